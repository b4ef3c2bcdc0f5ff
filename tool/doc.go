// Package tool defines tools as values, and the call pipeline.
//
// A Tool is made from a literal and frozen: Create for text input and output,
// CreateWith for a tool that touches resources, CreateTyped for Go types,
// FromSpec for everything. The needs of a tool bound what it can touch. Its
// effect class says what can be done about its effects. A tool without needs
// touches nothing. A tool without an effect class counts as irreversible.
//
// A call goes through fixed steps. Each step takes what the one before it
// returned, so no step can be skipped or reordered:
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
// Package agent runs the pipeline. Programs use agent.Txn.
package tool
