//===- Words.h - The words of the spec and did-you-mean ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The spelling of every enumeration, and suggestions for misspelt words: by
// edit distance, by the names that other systems use (num_embeddings), and by
// the place where a known key belongs (lr -> optimizer).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_WORDS_H
#define TERRACE_SPEC_WORDS_H

#include "Spec/Spec.h"

#include "llvm/ADT/ArrayRef.h"

namespace terrace::spec {

/// Spellings of an enumeration, indexed by its value.
template <typename E> llvm::ArrayRef<llvm::StringRef> words();

/// "; did you mean 'rows'?" or "".
std::string didYouMean(llvm::StringRef word,
                       llvm::ArrayRef<llvm::StringRef> allowed);

/// For an unknown key: didYouMean, or where the key belongs.
std::string keyHint(llvm::StringRef key,
                    llvm::ArrayRef<llvm::StringRef> allowed);

/// "a, b, c"; a long list is cut.
std::string listOf(llvm::ArrayRef<llvm::StringRef> words);

} // namespace terrace::spec

#endif // TERRACE_SPEC_WORDS_H
