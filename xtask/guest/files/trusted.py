"""Says that it runs; a test changes one byte of this file."""


def start(stop):
    with open("/dev/console", "w") as console:
        print("TRUSTED python runs", file=console)
    stop.wait()
