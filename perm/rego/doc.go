// Package rego answers permission requests from policies written in Rego. It is
// the only package of this module that imports OPA.
//
// A policy is one or more modules with package remit. Its rules add reasons to
// sets, and the sets that have a reason decide, the strictest first:
//
//	package remit
//
//	allow contains "reads stay in the workspace" if {
//		input.access.action == "read"
//		input.access.resource.root == "workspace"
//	}
//
//	ask contains "there is no way back" if input.call.effect_class == "pivot"
//	deny contains "never the git folder" if ".git" in input.access.resource.segments
//
// deny and limit refuse; then ask, hold, allow; where no rule says anything the
// answer is a denial. hint, require, ensure, mask, label, redact and hide say
// more about a call, see the Details of package perm. Every reason comes back
// with the file and line of the rule that gave it.
//
// An Engine never fails open. What can be found wrong with a policy is found by
// New, with a place and a way to fix it; what fails while a request is decided
// is an error and a denial.
package rego
