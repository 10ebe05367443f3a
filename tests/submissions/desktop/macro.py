# property: a macro that runs, since all macros are allowed, has no more rights than an action
import os, shutil, subprocess, time
ALLOWED = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item
 oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel"
 oor:op="fuse"><value>0</value></prop></item></oor:items>
"""
os.makedirs("/tmp/attacker/user")
open("/tmp/attacker/user/registrymodifications.xcu", "w").write(ALLOWED)
shutil.copy("/home/user/hostile.fods", "/tmp/attacker/copy.fods")  # the other one is open
office = subprocess.Popen(
    ["soffice", "-env:UserInstallation=file:///tmp/attacker", "--norestore",
     "/tmp/attacker/copy.fods"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
end = time.monotonic() + 150
while not os.path.exists("/home/user/probed") and time.monotonic() < end:
    time.sleep(0.05)
print(open("/home/user/probed").read())
print("END")
