//===- TerracePCH.cpp - Carrier of the precompiled header -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The object library that other compiler targets reuse the header from.
//
//===----------------------------------------------------------------------===//
