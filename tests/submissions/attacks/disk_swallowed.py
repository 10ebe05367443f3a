# property: a full disk is noticed even if the program swallows the error
# verdict: OLE
try:
    with open("/tmp/kept", "wb") as file:
        while True:
            file.write(b"x" * 2**20)
except OSError:
    pass
print("fine")
