// Package agentclients runs real coding agents from npm against a stand-in for
// their models that plays scripted tool calls. A test sees which hook events
// an agent sends, what it does with each answer, and what it tells its model.
//
// Each agent runs in a network namespace of its own whose only interface is
// loopback, so nothing leaves the machine. All permissions of the agent itself
// are granted, so that hooks alone decide.
//
// A test binary that uses the package starts with [Main], since the binary is
// also the recording hook and the process that sets up the namespace.
package agentclients
