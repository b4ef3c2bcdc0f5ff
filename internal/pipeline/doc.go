// Package pipeline runs calls. Package agent makes one Pipeline for each
// transaction.
//
// A call goes through fixed steps. Each step takes what the one before it
// returned, so no step can be skipped or reordered:
//
//	admit    find the tool, decode and validate the input, compute the accesses
//	permit   the session's grants, the policy, the approver
//	filter   code of the host program: refuse, answer, replace the input
//	intend   the write-ahead record
//	execute  the tool's own code, through its ToolContext
//	deliver  the filters again, with the result
//	settle   the result, durable
//	verify   output schema, the tool's Verify, the policy's postconditions
//
// Run in pipeline.go is the way of a call from its first step to its last.
// Resume continues a call that waited for an approval, Release runs a call that
// waited for the commit, and RevertCall runs a tool's own Revert.
package pipeline
