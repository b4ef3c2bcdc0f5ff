// Package rego decides permission requests by policies written in Rego. It is
// the only package of this module that imports OPA.
//
// A policy is one or more modules with package remit. Its rules add reasons to
// sets. The sets that have a reason decide, the strictest first:
//
//	package remit
//
//	allow contains "reads stay in the workspace" if {
//		input.access.action == "read"
//		input.access.resource.root == "workspace"
//	}
//
//	ask contains "the effect cannot be reverted" if input.call.effect_class == "pivot"
//	deny contains "never the git folder" if ".git" in input.access.resource.segments
//
// The sets deny and limit refuse. Then ask, hold and allow count, in this
// order. If no rule matches, the decision is a denial. The sets hint, require,
// ensure, mask, label, redact and hide add the Details of package perm. Every
// reason has the file and line of its rule.
//
// A commit has sets of its own, and no other set decides it: deny_commit, then
// ask_commit. If no rule of them matches, the transaction commits.
//
// An Engine never fails open. New finds the detectable errors of a policy, each
// with a position and a fix. A failure while the engine decides a request is an
// error and a denial.
package rego
