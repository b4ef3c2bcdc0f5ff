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
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// definition is a tool, a prompt or a resource template as its server declares
// it.
type definition struct {
	kind        kind
	name        string // or the template itself
	description string
	digest      string
	raw         json.RawMessage // as the server wrote it
	input       canon.Value     // its input schema
	hints       hints
}

// kind is a kind of definition, named like the member of the list response.
type kind string

const (
	tools     kind = "tools"
	prompts   kind = "prompts"
	templates kind = "resourceTemplates"
	resources kind = "resources"
)

// The prefixes of the keys of prompts and templates. Names of tools contain no
// colon.
const (
	keyPrompt   = "prompt:"
	keyTemplate = "template:"
)

// key returns the key of a definition in the pins: the name of a tool, or the
// prefixed name of a prompt or template.
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

// kindOf returns the kind of a key.
func kindOf(key string) kind {
	switch {
	case strings.HasPrefix(key, keyPrompt):
		return prompts
	case strings.HasPrefix(key, keyTemplate):
		return templates
	}
	return tools
}

// hints are the annotations of a tool, by its server.
type hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

// maxDefinition bounds one definition, in bytes.
const maxDefinition = 256 << 10

// define parses a definition. Its digest covers all of it, as clients can show
// each part to a user.
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
	case !naming.Permitted.MatchString(d.name):
		return d, errors.New("its name is not 1 to 128 letters, digits and . _ -")
	case d.input.Kind() != canon.Object:
		return d, errors.New("it has no input schema")
	}
	return d, nil
}

// plainName reports whether a name or URI can be shown unchanged.
func plainName(name string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxURI && utf8.ValidString(name) && !strings.ContainsFunc(name, odd)
}

// listed returns the definition under the name that clients know. The rest
// stays byte for byte as the server wrote it.
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

// inputSchema returns the schema against which the runtime validates a call's
// input, before the policy decides. If loose is true, it accepts any object,
// and the server validates its input itself. A schema that the runtime cannot
// use, such as one of an older draft, is loose too.
func (d definition) inputSchema(loose bool) json.RawMessage {
	if !loose {
		doc, ok := d.input.Any().(map[string]any)
		if ok {
			if draft, is := doc["$schema"].(string); is && strings.Contains(draft, "draft-07") {
				delete(doc, "$schema") // what servers write means the same in both
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
