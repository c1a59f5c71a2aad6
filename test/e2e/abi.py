"""Structs of include/terrace-rt/session.h, for tests that call the C ABI."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int32), ("sample", ctypes.c_int64),
                ("position", ctypes.c_int64), ("value", ctypes.c_int64), ("feature", ctypes.c_char * 128),
                ("message", ctypes.c_char * 1024)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("mode", ctypes.c_int32), ("artifact_path", ctypes.c_char_p),
                ("artifact", ctypes.c_void_p), ("state_dir", ctypes.c_char_p), ("flags", ctypes.c_uint32),
                ("threads", ctypes.c_uint32), ("from", ctypes.c_char_p), ("init_from", ctypes.c_char_p),
                ("cpu", ctypes.c_char_p), ("log", ctypes.c_void_p), ("log_user", ctypes.c_void_p)]
