// Package wire translates between remit's tools and the tool parts of what the providers of models speak: OpenAI Chat
// Completions and Responses, Anthropic Messages, Gemini, Bedrock Converse and Ollama.
//
// An [Adapter] is a [Format] and the tools that a model is offered. It writes their definitions and the choice among them
// for a request, reads the calls of one assistant turn, and writes their outcomes as the messages to append:
//
//	a, err := wire.New(wire.Anthropic, tools...)
//	fields, err := a.Request(wire.ToolChoice{})     // "tools", "tool_choice", for the body of the request
//	calls, err := a.Calls(body)                 // of the response
//	messages, err := a.Results(calls, outcomes) // one outcome for each call, for the history
//
// It translates tool parts and nothing else. The assistant's turn goes into the history as the provider sent it, byte for
// byte: thought signatures, reasoning, the caller of a call and whatever a provider adds tomorrow live there, and an adapter
// neither reads nor rebuilds them. It opens no connection.
//
// The schema of a tool is the only source of its definitions. What a format cannot say moves to the description, and stays
// enforced: every call is validated against the tool's own schema before it runs. An input that is not an object, such as the
// text of a free-form tool, travels as the one member "input" of an object, because every format wants one.
//
// A call that cannot be run has a Problem. It is answered, always as an error that the model can correct, and whatever
// outcome is given for it does not count. Numbers are never read as floating point.
//
// Calls of tools that somebody else offered beside remit's, such as a provider's own web search, are left to them.
package wire
