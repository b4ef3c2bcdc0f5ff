// Package tool defines tools as values.
//
// A Tool is made from a literal and frozen: Create for text input and output,
// CreateWith for a tool that touches resources, CreateTyped for Go types,
// FromSpec for everything. The needs of a tool bound what it can touch. Its
// effect class says what can be done about its effects. A tool without needs
// touches nothing. A tool without an effect class counts as irreversible.
//
// Package agent runs calls of tools. Programs use agent.Txn. The steps of a call
// are described in docs/explanation/design.md.
package tool
