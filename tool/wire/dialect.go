package wire

// dialect is the part of JSON Schema that one format, or one mode of it, understands: a table, because that is what providers
// publish and change.
type dialect struct {
	// rules say what becomes of a keyword; told where there is none.
	rules   map[string]rule
	every   bool            // every keyword stays; rules is not looked at
	formats map[string]bool // values of "format" that stay; nil: all
	regular bool            // "pattern" stays only in the plainest syntax
	fewest  bool            // "minItems" stays only as 0 or 1

	closed   bool // strict: every object is closed
	required bool // strict: every member is required
	cyclic   bool // strict: a schema may refer to itself
	inlined  bool // references are replaced by what they refer to
	names    bool // enums hold texts and numbers alone
	most     limitCounter
}

// rule is what becomes of a keyword.
type rule uint8

const (
	toDescription rule = iota // it goes into the description
	kept                      // it stays
	dropped                   // it means nothing to a model
	refused                   // a schema that has it cannot be said
	renamed                   // another keyword says it, or nearly: see rename
)

// limitCounter counts what providers limit, over one schema or over all strict ones of a request. Zero as a limit is none.
type limitCounter struct {
	tools, optional, unions int // of a request
	properties, levels      int // of a schema
	enums, characters       int
	long                    int // characters of one enum of more than longEnum values
}

// longEnum is how many values an enum has before its characters are limited.
const longEnum = 250

func rules(groups map[rule][]string) map[string]rule {
	table := map[string]rule{
		"$schema": dropped, "$comment": dropped, "$vocabulary": dropped, "readOnly": dropped, "writeOnly": dropped, "deprecated": dropped,
		"const": renamed, "oneOf": renamed,
	}
	for r, words := range groups {
		for _, word := range words {
			table[word] = r
		}
	}
	return table
}

func set(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[w] = true
	}
	return m
}

// passthrough is for providers that take any JSON Schema and hold the model to none.
func passthrough() dialect { return dialect{every: true} }

// What no strict mode can express, and what would make it mean something else.
func never() []string {
	return []string{
		// Some providers take allOf; but closing the objects of one would leave nothing that fits all of them.
		"allOf", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "not", "if", "then", "else", "dependentSchemas", "dependentRequired",
		"dependencies", "definitions", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "prefixItems",
	}
}

func openAIStrict() *dialect {
	return &dialect{
		rules: rules(map[rule][]string{
			kept: {
				"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
				"$ref", "$defs", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
				"minItems", "maxItems",
			},
			refused: never(),
		}),
		formats: set("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
		regular: true,
		closed:  true, required: true, cyclic: true,
		most: limitCounter{properties: 5000, levels: 10, enums: 1000, characters: 120_000, long: 15_000},
	}
}

func anthropicStrict() *dialect {
	return &dialect{
		rules: rules(map[rule][]string{
			kept: {
				"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
				"$ref", "$defs", "pattern", "format", "minItems",
			},
			refused: never(),
		}),
		formats: set("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
		regular: true, fewest: true, closed: true,
		most: limitCounter{tools: 20, optional: 24, unions: 16},
	}
}

// geminiSubset is what parametersJsonSchema knows, without oneOf: two forms that are told apart by what only a description
// says would rule each other out.
func geminiSubset() dialect {
	return dialect{
		rules: rules(map[rule][]string{
			kept: {
				"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems",
				"maxItems", "minimum", "maximum", "anyOf", "properties", "additionalProperties", "required",
			},
		}),
		names: true,
	}
}

// ollamaSubset is what Ollama hands on to the model. It forgets the rest without a word.
func ollamaSubset() dialect {
	return dialect{
		rules: rules(map[rule][]string{
			kept:    {"type", "description", "properties", "items", "enum", "anyOf", "required"},
			dropped: {"title", "$defs", "$id", "$anchor"},
		}),
		inlined: true,
	}
}
