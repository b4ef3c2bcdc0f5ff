// Package tool is tools as values, and the straight line of one call.
//
// A Tool is made from a literal and frozen: Create for text in and text out,
// CreateWith for a tool that touches things, CreateTyped for Go types, FromSpec
// for everything. What a tool may touch at most is in its needs; what can be
// done about its effects is in its effect class; without either it touches
// nothing and counts as having no way back.
//
// A call goes through six steps, each of which takes what the one before it
// returned, so that none can be skipped or reordered:
//
//	admit    find the tool, decode and validate the input, compute the accesses
//	permit   the session's grants, the policy, the approver
//	filters  code of the host program: refuse, answer, replace the input
//	intend   the write-ahead record
//	execute  the tool's own code, through its ToolContext
//	deliver  the filters again, with the result
//	settle   the result, durable
//	verify   output schema, the tool's Verify, the policy's postconditions
//
// Package agent runs the line; programs use agent.Txn.
package tool
