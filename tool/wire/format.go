package wire

import (
	"encoding/json"

	"github.com/remit-dev/remit/internal/canon"
)

// Format is the wire shape of one provider's interface. The zero Format is none, and refused.
type Format string

// The formats.
const (
	OpenAIChat      Format = "openai_chat"      // Chat Completions, and the many servers that speak it
	OpenAIResponses Format = "openai_responses" // Responses
	Anthropic       Format = "anthropic"        // Messages
	Gemini          Format = "gemini"           // generateContent
	Bedrock         Format = "bedrock"          // Converse
	Ollama          Format = "ollama"           // /api/chat
)

// Formats lists every format, in the order of the documentation.
func Formats() []Format {
	return []Format{OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, Ollama}
}

// shape is what one format does in its own way.
type shape struct {
	// definitions are the elements of the list of tools in a request.
	definitions func([]definition) []any
	// request are the members of a request that are about tools; list is what definitions came to.
	request func(list json.RawMessage, c ToolChoice) (map[string]any, error)
	// turn finds the calls in a response, or in the turn alone.
	turn func(raw json.RawMessage) (turn, error)
	// results are the messages that answer the calls of one turn, in their order.
	results func([]answer) []any
	// kept is what of a response goes into the history, as it stands.
	kept func(raw json.RawMessage) ([]json.RawMessage, error)
	// text is a text as a part of a message, and user the message of a user that consists of it.
	text func(string) any
	user func(part any) any

	ids        bool     // every call has an id
	alternates bool     // after a message of the user comes one of the model, and only then another
	plain      dialect  // what schemas may say
	strict     *dialect // what they may say in strict mode; nil where there is none
}

func shapes() map[Format]shape {
	return map[Format]shape{
		OpenAIChat:      openAIChat(),
		OpenAIResponses: openAIResponses(),
		Anthropic:       anthropic(),
		Gemini:          gemini(),
		Bedrock:         bedrock(),
		Ollama:          ollama(),
	}
}

// definition is one tool as a model is told of it.
type definition struct {
	name, description string
	schema            json.RawMessage
	strict            bool
}

// fields is one JSON object that is being written; a nil value is left out.
type fields map[string]any

// MarshalJSON writes the members that have a value, in canonical order.
func (f fields) MarshalJSON() ([]byte, error) {
	there := map[string]any{}
	for name, value := range f {
		if value != nil {
			there[name] = value
		}
	}
	return canon.Marshal(there)
}

// orNil leaves out what is empty.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
