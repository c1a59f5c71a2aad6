// RUN: terrace-opt %s --plan-group --verify-diagnostics
// expected-error @below {{has no plan.program; run emb-to-plan first}}
module {}
