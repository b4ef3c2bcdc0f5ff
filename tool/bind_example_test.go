package tool_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

type dictionary map[string]string

type word struct {
	Word string `json:"word"`
	Max  int    `json:"max" default:"1" jsonschema:"most meanings"`
}

// Meaning is offered below; a method that is not named there is not.
func (d dictionary) Meaning(_ context.Context, in word) (string, error) { return d[in.Word], nil }

// Methods of a value as tools: the schema comes from their argument.
func ExampleBind() {
	tools, err := tool.Bind(dictionary{"remit": "to send back"}, map[string]tool.Spec{
		"Meaning": {Name: "look_up", Description: "Look a word up.", EffectClass: effect.Pure},
	})
	fmt.Println(err)
	fmt.Println(tools[0].Name(), string(tools[0].InputSchema()))
	// Output:
	// <nil>
	// look_up {"additionalProperties":false,"properties":{"max":{"default":1,"description":"most meanings","type":"integer"},"word":{"type":"string"}},"required":["word"],"type":"object"}
}
