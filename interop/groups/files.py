"""Contents of files that follow from what they are for."""

import hashlib
import os


def bytes_of(length, *seed):
    return hashlib.shake_128(str(seed).encode()).digest(length)


def small_files(folder, prefix, count, dice):
    """Makes a local folder with that many files of up to 60,000 bytes. Gives their contents by name."""
    os.makedirs(folder)
    made = {f"{prefix}{number}": bytes_of(dice.randrange(1, 60_000), os.path.basename(folder), number) for number in range(count)}
    for name, data in made.items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    return made
