# property: memory that the display server holds for a program counts as the desktop's
from Xlib import X, display, error
screen = display.Display()
root = screen.screen().root
kept = []
try:
    for _ in range(200):
        pixmap = root.create_pixmap(8000, 8000, 24)
        graphics = pixmap.create_gc(foreground=0x123456)
        pixmap.fill_rectangle(graphics, 0, 0, 8000, 8000)
        screen.sync()
        kept.append(pixmap)
    print("REACHED", len(kept), "pictures of 256 MB")
except (error.ConnectionClosedError, error.XError, OSError) as why:
    print("ended by", type(why).__name__)
print("END")
