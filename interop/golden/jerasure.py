#!/usr/bin/env python3
"""Writes what Jerasure 2.0 makes of `cauchy_good`, with words of 8 bits and packets of an eighth of a unit, to the file that
its argument names; README.md describes the lines. Needs Debian's `libjerasure2`."""

import ctypes
import sys

SHAPES = ((1, 1), (2, 1), (3, 2), (4, 3), (5, 2), (6, 3), (8, 4), (10, 4), (12, 4), (17, 5), (40, 2))
# Packets are whole words of a processor.
LENGTHS = (64, 192)
WORD = 8
INT = ctypes.c_int
jerasure = ctypes.CDLL("libJerasure.so.2")
for name in ("cauchy_good_general_coding_matrix", "jerasure_matrix_to_bitmatrix"):
    getattr(jerasure, name).restype = ctypes.POINTER(INT)


def unit(number, length):
    """Input `number`."""
    x, out = number + 1, bytearray()
    for _ in range(length):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(x >> 56)
    return bytes(out)


def buffers(units):
    held = [ctypes.create_string_buffer(data, len(data)) for data in units]
    return held, (ctypes.c_void_p * len(held))(*(ctypes.addressof(buffer) for buffer in held))


def parity(k, m, bits, length):
    data, data_pointers = buffers([unit(i, length) for i in range(k)])
    coded, coded_pointers = buffers([bytes(length)] * m)
    jerasure.jerasure_bitmatrix_encode(k, m, WORD, bits, data_pointers, coded_pointers, length, length // WORD)
    return [buffer.raw for buffer in coded]


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        print("# Made by interop/golden/jerasure.py with Jerasure 2.0.", file=out)
        for k, m in SHAPES:
            found = jerasure.cauchy_good_general_coding_matrix(k, m, WORD)
            matrix = bytes(found[i] for i in range(k * m))
            bits = jerasure.jerasure_matrix_to_bitmatrix(k, m, WORD, found)
            print("matrix cauchy-good", k, m, matrix.hex(), sum(bits[i] for i in range(k * m * WORD * WORD)), file=out)
            for length in LENGTHS if k <= 12 else ():
                print("parity cauchy-good", k, m, length, *(coded.hex() for coded in parity(k, m, bits, length)), file=out)


if __name__ == "__main__":
    main()
