package gateway

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
)

// definition is a tool, a prompt or a template of resources as its server declares it.
type definition struct {
	kind        kind
	name        string // of a template: the template
	description string
	digest      string
	raw         json.RawMessage // as the server wrote it
	input       canon.Value     // its schema
	hints       hints
}

// kind is what a server lists, as the member of its answer is named.
type kind string

const (
	tools     kind = "tools"
	prompts   kind = "prompts"
	templates kind = "resourceTemplates"
	resources kind = "resources"
)

// What the key of a prompt or a template begins with. No tool's name holds a colon.
const (
	keyPrompt   = "prompt:"
	keyTemplate = "template:"
)

// key is what a definition is pinned under: the name of a tool, and what is none of a prompt or a template.
func (d definition) key() string {
	switch d.kind {
	case prompts:
		return keyPrompt + d.name
	case templates:
		return keyTemplate + d.name
	default:
		return d.name
	}
}

// kindOf is the kind of what is pinned under a key.
func kindOf(key string) kind {
	switch {
	case strings.HasPrefix(key, keyPrompt):
		return prompts
	case strings.HasPrefix(key, keyTemplate):
		return templates
	}
	return tools
}

// hints are what a server says of the effects of its own tool.
type hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// maxDefinition bounds one definition, in bytes.
const maxDefinition = 256 << 10

// define reads a definition. Its digest is of all of it: what a client may show somebody counts too.
func define(k kind, raw json.RawMessage) (definition, error) {
	v, err := canon.Parse(raw, canon.Limits{Bytes: maxDefinition, Depth: 64})
	if err != nil {
		return definition{kind: k}, err
	}
	var head struct {
		Name        string `json:"name"`
		Template    string `json:"uriTemplate"`
		Description string `json:"description"`
		Annotations hints  `json:"annotations"`
	}
	if err := json.Unmarshal(v.Canonical(), &head); err != nil {
		return definition{kind: k}, errors.New("a name, a description or an annotation is of the wrong type")
	}
	d := definition{kind: k, name: head.Name, description: head.Description, hints: head.Annotations, raw: raw}
	if k == tools {
		return d.asTool(v)
	}
	if k == templates {
		d.name = head.Template
	}
	d.digest = string(canon.Sum("remit/mcp-offer/v1", []byte(k), v.Canonical()))
	if !plainName(d.name) {
		return d, fmt.Errorf("its name is not 1 to %d bytes of text on one line", maxURI)
	}
	return d, nil
}

func (d definition) asTool(v canon.Value) (definition, error) {
	d.digest = string(canon.Sum("remit/mcp-tool/v1", v.Canonical()))
	d.input, _ = v.Get("inputSchema")
	switch {
	case !upstreamOK.MatchString(d.name):
		return d, errors.New("its name is not 1 to 128 letters, digits and . _ -")
	case d.input.Kind() != canon.Object:
		return d, errors.New("it has no input schema")
	}
	return d, nil
}

// plainName reports whether a name, or a URI, is one that can be shown as it is.
func plainName(name string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxURI && utf8.ValidString(name) && !strings.ContainsFunc(name, odd)
}

// listed is the definition under the name that clients know, byte for byte as the server wrote the rest of it.
func (d definition) listed(name string) (json.RawMessage, error) {
	at, end, err := memberValue(d.raw, "name")
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{d.raw[:at], d.raw[end:]}, quoted), nil
}

// memberValue is where the value of a member of an object begins and ends.
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

// inputSchema is the schema that a call's input is held to before anybody is asked. Loose takes any object: the server
// judges its input itself, and says in its own words what is wrong with it. One that cannot be held to, such as that of
// an older draft, is loose too.
func (d definition) inputSchema(loose bool) json.RawMessage {
	if !loose {
		doc, ok := d.input.Any().(map[string]any)
		if ok {
			if draft, is := doc["$schema"].(string); is && strings.Contains(draft, "draft-07") {
				delete(doc, "$schema") // what servers write is the same in both
			}
			raw, err := canon.Marshal(doc)
			if err == nil {
				if _, err = schema.Compile(raw); err == nil {
					return raw
				}
			}
		}
	}
	return json.RawMessage(`{"type":"object"}`)
}
