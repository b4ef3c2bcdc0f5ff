package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// Definition is a tool, a prompt or a resource template as its server declares
// it.
type Definition struct {
	Kind        Kind
	Name        string // or the template itself
	Description string
	Digest      string
	Raw         json.RawMessage // as the server wrote it
	input       canon.Value     // its input schema
	output      canon.Value     // its output schema; zero: it declares none
	Hints       Hints
}

// Kind is a kind of definition, named like the member of the list response.
type Kind string

// The kinds of definitions.
const (
	Tools     Kind = "tools"
	Prompts   Kind = "prompts"
	Templates Kind = "resourceTemplates"
	Resources Kind = "resources"
)

// The prefixes of the keys of prompts and templates. Names of tools contain no
// colon.
const (
	KeyPrompt   = "prompt:"
	keyTemplate = "template:"
)

// Key returns the key of a definition in the pins: the name of a tool, or the
// prefixed name of a prompt or template.
func (d Definition) Key() string {
	switch d.Kind {
	case Prompts:
		return KeyPrompt + d.Name
	case Templates:
		return keyTemplate + d.Name
	default:
		return d.Name
	}
}

// KindOf returns the kind of a key.
func KindOf(key string) Kind {
	switch {
	case strings.HasPrefix(key, KeyPrompt):
		return Prompts
	case strings.HasPrefix(key, keyTemplate):
		return Templates
	}
	return Tools
}

// Hints are the annotations of a tool, by its server.
type Hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// MaxDefinition bounds one definition, in bytes.
const MaxDefinition = 256 << 10

// Parse parses a definition. Its digest covers all of it, as clients can show
// each part to a user.
func Parse(k Kind, raw json.RawMessage) (Definition, error) {
	v, err := canon.Parse(raw, canon.Limits{Bytes: MaxDefinition, Depth: 64})
	if err != nil {
		return Definition{Kind: k}, err
	}
	var head struct {
		Name        string `json:"name"`
		Template    string `json:"uriTemplate"`
		Description string `json:"description"`
		Annotations Hints  `json:"annotations"`
	}
	if err := json.Unmarshal(v.Canonical(), &head); err != nil {
		return Definition{Kind: k}, errors.New("a name, a description or an annotation is of the wrong type")
	}
	d := Definition{Kind: k, Name: head.Name, Description: head.Description, Hints: head.Annotations, Raw: raw}
	if k == Tools {
		return d.asTool(v)
	}
	if k == Templates {
		d.Name = head.Template
	}
	d.Digest = string(canon.Sum("remit/mcp-offer/v1", []byte(k), v.Canonical()))
	if !PlainName(d.Name) {
		return d, fmt.Errorf("its name is not 1 to %d bytes of text on one line", maxURI)
	}
	return d, nil
}

func (d Definition) asTool(v canon.Value) (Definition, error) {
	d.Digest = string(canon.Sum("remit/mcp-tool/v1", v.Canonical()))
	d.input, _ = v.Get("inputSchema")
	d.output, _ = v.Get("outputSchema")
	switch {
	case !naming.Permitted(d.Name):
		return d, errors.New("its name is not 1 to 128 letters, digits and . _ -")
	case d.input.Kind() != canon.Object:
		return d, errors.New("it has no input schema")
	}
	return d, nil
}

// PlainName reports whether a name or URI can be shown unchanged.
func PlainName(name string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxURI && utf8.ValidString(name) && !strings.ContainsFunc(name, odd)
}

// ListedAs returns the definition under the name that clients know. The rest
// stays byte for byte as the server wrote it.
func (d Definition) ListedAs(name string) (json.RawMessage, error) {
	at, end, err := memberValue(d.Raw, "name")
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{d.Raw[:at], d.Raw[end:]}, quoted), nil
}

// memberValue returns the start and end of the value of an object's member.
func memberValue(object []byte, name string) (at, end int, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err = dec.ReadToken(); err != nil {
		return 0, 0, err
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return 0, 0, err
		}
		found := key.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return 0, 0, err
		}
		if found {
			end = int(dec.InputOffset())
			return end - len(value), end, nil
		}
	}
	return 0, 0, fmt.Errorf("there is no member %q", name)
}

// InputSchema returns the schema against which the runtime validates a call's
// input, before the policy decides. If loose is true, it accepts any object,
// and the server validates its input itself. A schema that the runtime cannot
// use, such as one of an older draft, is loose too.
func (d Definition) InputSchema(loose bool) json.RawMessage {
	if compiled := usable(d.input); !loose && compiled != nil {
		return compiled.Canonical()
	}
	return json.RawMessage(`{"type":"object"}`)
}

// usable returns a schema that a server declares, or nil if the runtime cannot
// use it.
func usable(declared canon.Value) *schema.Schema {
	doc, ok := declared.Any().(map[string]any)
	if !ok {
		return nil
	}
	if draft, is := doc["$schema"].(string); is && strings.Contains(draft, "draft-07") {
		delete(doc, "$schema") // what servers write means the same in both
	}
	raw, err := canon.Marshal(doc)
	if err != nil {
		return nil
	}
	compiled, err := schema.Compile(raw)
	if err != nil {
		return nil
	}
	return compiled
}

// Describe returns the name of a key for messages.
func Describe(key string) string {
	what, name, offered := strings.Cut(key, ":")
	if !offered {
		what, name = "tool", key
	}
	return what + " " + canon.Printable(name, 256)
}

// maxURI bounds a name or a URI, in bytes.
const maxURI = 2 << 10
