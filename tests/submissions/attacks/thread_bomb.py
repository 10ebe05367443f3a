# property: threads count like processes
# verdict: RE
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
