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
// byte. It contains thought signatures, reasoning, the caller of a call and future members of a provider. An adapter
// neither reads nor rebuilds them. It opens no connection.
//
// The schema of a tool is the only source of its definitions. What a format cannot say moves to the description, and stays
// enforced: every call is validated against the tool's own schema before it runs. An input that is not an object, such as the
// text of a free-form tool, travels as the one member "input" of an object, because every format wants one.
//
// A call that cannot run has a Problem. The adapter answers it with an error that the model can correct, and ignores the
// outcome that the program gives for it. The adapter never reads numbers as floating point.
//
// The adapter ignores calls of tools that other parties offer beside remit's, such as a provider's own web search.
package wire
