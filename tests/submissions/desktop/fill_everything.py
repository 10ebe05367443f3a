# property: everything that can fill up is bounded, and the driver keeps working
import os
full = 0
for folder in ("/tmp", "/home/user", "/run", "/dev/shm", "/dev/mqueue"):
    try:
        with open(f"{folder}/ballast", "wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                if os.fstat(file.fileno()).st_size > 300 * 2**20:
                    print("REACHED too much room in", folder)
                    break
    except OSError:
        full += 1
print("full:", full)
print("END")
