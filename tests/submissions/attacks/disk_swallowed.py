# property: a full disk is seen even where the error is swallowed
# verdict: OLE
try:
    with open("/tmp/kept", "wb") as file:
        while True:
            file.write(b"x" * 2**20)
except OSError:
    pass
print("fine")
