package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// strictly offers one tool of a schema in strict mode, and says why it is not.
func strictly(t *testing.T, f Format, input string) (Adapter, string) {
	t.Helper()
	a, err := New(f, made(t, "x", "", input))
	require.NoError(t, err)
	a = a.Strict()
	return a, a.WhyNotStrict("x")
}

func TestStrictOnlyWhereTheSchemaQualifies(t *testing.T) {
	for input, want := range map[string]struct{ openai, anthropic string }{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`: {}, // closing it is allowed
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                  {},
		`{"type":"object"}`:                                                                    {},
		`{"type":"string"}`:                                                                    {},
		`{"type":["string","null"]}`:                                                           {},
		`{"type":"object","additionalProperties":true}`:                                        {"not declared", "not declared"},
		`{"type":"object","additionalProperties":{"type":"string"}}`:                           {"not declared", "not declared"},
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"]}`:              {"declares no members", "declares no members"},
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}`:  {},
		`{"type":"object","properties":{"a":{}}}`:                                              {"does not say its type", "does not say its type"},
		`{"type":"object","properties":{"a":true}}`:                                            {"takes anything", "takes anything"},
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                {"what it holds", "what it holds"},
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`:              {"does not declare", "does not declare"},
		`{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^b":{}}}`: {`"patternProperties"`, `"patternProperties"`},
		`{"type":"object","properties":{"a":{"allOf":[{"type":"string"}],"type":"string"}}}`:   {`"allOf"`, `"allOf"`},
		`{"type":"object","properties":{"a":{"type":"string","not":{"const":"x"}}}}`:           {`"not"`, `"not"`},
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"anyOf":[{"type":"string"}]}}}`: {
			"several forms beside", "several forms beside",
		},
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`:                                            {"by its type whether it may be null", ""},
		`{"type":"object","properties":{"a":{"enum":["x"]}}}`:                                                                           {"by its type whether it may be null", ""},
		`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x"]}}}`:                                                  {"by its type whether it may be null", ""},
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`:                                                               {},
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","const":"x"},"c":{"type":["string"]}}}`: {},
		`{"type":"object","properties":{"c":{"type":["string","integer"]}},"required":["c"]}`:                                           {"several types", ""},
		`{"type":"object","properties":{"c":{"type":["string","integer","null"]}},"required":["c"]}`:                                    {"several types", ""},
		`{"type":"object","properties":{"c":{"enum":["x",1]}},"required":["c"]}`:                                                        {"several types", ""},
		`{"type":"object","properties":{"c":{"type":"string","enum":["x",1]}},"required":["c"]}`:                                        {"not of its type", ""},
		`{"type":"object","properties":{"c":{"enum":[{"a":1}]}},"required":["c"]}`:                                                      {"an object, a list", ""},
		`{"type":"object","properties":{"c":{"const":"say \"x\""}},"required":["c"]}`:                                                   {"with a quote", ""},
		`{"type":"object","properties":{"c":{"type":"integer","enum":[1,2]},"e":{"const":true}},"required":["c","e"]}`:                  {},
		`{"type":"object","properties":{"c":{"type":"string","anyOf":[{"type":"string"}]}},"required":["c"]}`:                           {`forms beside "type"`, ""},
		`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}}]}`:                                                            {"inside of one form of several", ""},
		`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}]}`:                                           {},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"string"}}}`:                    {},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"d"}},"required":["a"],"$defs":{"A":{"type":"string"}}}`:  {},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`:                                     {"by its type", ""},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","minLength":1}},"required":["a"],"$defs":{"A":{"type":"string"}}}`: {
			`"minLength" beside a reference`, `"minLength" beside a reference`,
		},
		`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"string"}},"required":["a","b"]}`: {"one of its $defs", "one of its $defs"},
		`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"]}`:               {"", "one of its $defs"},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"object",
			"properties":{"n":{"type":"array","items":{"$ref":"#/$defs/A"}}},"required":["n"]}}}`: {"", "refers to itself"},
		deep(12): {"levels", ""},
	} {
		_, why := strictly(t, OpenAIChat, input)
		requireWhy(t, want.openai, why, input)
		_, why = strictly(t, Anthropic, input)
		requireWhy(t, want.anthropic, why, input)
		a, why := strictly(t, Gemini, input)
		require.Equal(t, "the format has no strict mode", why)
		require.NotContains(t, definitions(t, a), "strict")
	}
}

func requireWhy(t *testing.T, want, why, input string) {
	t.Helper()
	if want == "" {
		require.Empty(t, why, input)
		return
	}
	require.Contains(t, why, want, input)
}

// deep is a schema of objects inside each other.
func deep(levels int) string {
	if levels == 0 {
		return `{"type":"string"}`
	}
	return `{"type":"object","properties":{"a":` + deep(levels-1) + `},"required":["a"]}`
}

func TestAToolThatIsNotStrictIsOfferedAsItWas(t *testing.T) {
	open := `{"type":"object","additionalProperties":true,"properties":{}}`
	a, _ := strictly(t, OpenAIResponses, open)
	same(t, `[{"type":"function","name":"x","parameters":`+open+`,"strict":false}]`, definitions(t, a))
	require.Equal(t, "the adapter is not strict", adapter(t, OpenAIChat).WhyNotStrict("weather"))
}

// What strict mode makes null is absent again for the tool, and nothing else is.
func TestNullsOfStrictModeAreTakenAway(t *testing.T) {
	input := `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["string","null"]},"r":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer"}}}},
		"in":{"type":"object","properties":{"e":{"type":"string","enum":["x"],"description":"E"}}}},"required":["r"]}`
	a, why := strictly(t, OpenAIChat, input)
	require.Empty(t, why)
	same(t, `[{"type":"function","function":{"name":"x","strict":true,"parameters":{"type":"object","additionalProperties":false,
		"required":["a","in","list","n","r"],"properties":{"a":{"type":["string","null"]},"n":{"type":["string","null"]},"r":{"type":"string"},
		"list":{"type":["array","null"],"items":{"type":"object","properties":{"b":{"type":["integer","null"]}},"required":["b"],"additionalProperties":false}},
		"in":{"type":["object","null"],"required":["e"],"additionalProperties":false,
			"properties":{"e":{"description":"E","anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}}}}}}}]`, definitions(t, a))
	for args, want := range map[string]string{
		`{"a":null,"n":null,"r":null,"list":null,"in":null}`:                   `{"n":null,"r":null}`,
		`{"a":"","in":{"e":null},"list":[{"b":null},{"b":1.0}],"n":"","r":""}`: `{"a":"","in":{},"list":[{},{"b":1}],"n":"","r":""}`,
		`{ "r":"as it is", "a":"1" }`:                                          `{ "r":"as it is", "a":"1" }`,
		`{"unknown":null}`:                                                     `{"unknown":null}`,
	} {
		calls := read(t, a, turnOf(OpenAIChat, [3]string{"1", "x", carriedArgs(OpenAIChat, args)}))
		require.Nil(t, calls[0].Problem)
		require.Equal(t, want, string(calls[0].Input))
	}
	// Where strict mode lets members be absent, null is what the model meant, and is refused by the tool.
	a, why = strictly(t, Anthropic, input)
	require.Empty(t, why)
	calls := read(t, a, turnOf(Anthropic, [3]string{"1", "x", `{"a":null,"r":""}`}))
	require.Equal(t, `{"a":null,"r":""}`, string(calls[0].Input))
}

func TestWhatAFormatCannotSayIsReported(t *testing.T) {
	input := `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","properties":{
		"a":{"type":"string","pattern":"^(?i)x","format":"color","minLength":2,"default":"x","description":"A."},
		"b":{"$ref":"#/$defs/B","description":"B.","minProperties":1},"c":{"oneOf":[{"const":1},{"const":true}]},"d":{"$ref":"#/$defs/B"}},
		"$defs":{"B":{"type":"object","description":"of B","properties":{"up":{"$ref":"#/$defs/B"},"no":false,"any":true,"k":{"type":"array","items":{"type":"string"},"minItems":2}},"required":["k"]}}}`
	a, err := New(Gemini, made(t, "x", "", input))
	require.NoError(t, err)
	same(t, `[{"functionDeclarations":[{"name":"x","parametersJsonSchema":{"type":"object","title":"T","properties":{
		"a":{"type":"string","format":"color","description":"A. (default: \"x\"; minLength: 2; pattern: \"^(?i)x\")"},
		"b":{"description":"B. (minProperties: 1)","anyOf":[{"$ref":"#/$defs/B"}]},
		"c":{"anyOf":[{"enum":[1]},{"description":"(const: true)"}]},"d":{"$ref":"#/$defs/B"}},
		"$defs":{"B":{"type":"object","description":"of B","properties":{"up":{"$ref":"#/$defs/B"},"no":{"description":"nothing is valid here"},"any":{},
			"k":{"type":"array","items":{"type":"string"},"minItems":2}},"required":["k"]}}}}]}]`, definitions(t, a))
	a, err = New(Ollama, made(t, "x", "", input))
	require.NoError(t, err)
	b := `"properties":{"up":{"description":"(of the same form as what it is a part of)"},"no":{"description":"nothing is valid here"},"any":{},
		"k":{"type":"array","items":{"type":"string"},"description":"(minItems: 2)"}}`
	same(t, `[{"type":"function","function":{"name":"x","parameters":{"type":"object","properties":{
		"a":{"type":"string","description":"A. (default: \"x\"; format: \"color\"; minLength: 2; pattern: \"^(?i)x\")"},
		"b":{"type":"object","description":"B. (minProperties: 1; required: [\"k\"])",`+b+`},
		"c":{"anyOf":[{"enum":[1]},{"enum":[true]}]},"d":{"type":"object","description":"of B (required: [\"k\"])",`+b+`}}}}}]`, definitions(t, a))
}

// An input that is no plain object goes into one, and its references still lead to the same places.
func TestReferencesMoveWithTheirSchema(t *testing.T) {
	input := `{"anyOf":[{"$ref":"#/$defs/A"},{"type":"array","items":{"$ref":"#"}}],"$defs":{"A":{"type":"string"},"B":{"$ref":"#/anyOf/0"}}}`
	a, err := New(Anthropic, made(t, "x", "", input))
	require.NoError(t, err)
	same(t, `[{"name":"x","input_schema":{"type":"object","required":["input"],"additionalProperties":false,
		"$defs":{"A":{"type":"string"},"B":{"$ref":"#/properties/input/anyOf/0"}},
		"properties":{"input":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"array","items":{"$ref":"#/properties/input"}}]}}}}]`, definitions(t, a))
	calls := read(t, a, turnOf(Anthropic, [3]string{"1", "x", `{"input":["a",["b"]]}`}))
	require.Equal(t, `["a",["b"]]`, string(calls[0].Input))
}

func TestEverythingAndNothingHaveASchemaEverywhere(t *testing.T) {
	for _, f := range Formats() {
		a, err := New(f, made(t, "x", "", `true`), made(t, "y", "", `{"properties":{"a":false,"b":true,"c":{"type":"array","items":false}}}`))
		require.NoError(t, err)
		require.NotContains(t, definitions(t, a), `"a":false`)
		require.NotContains(t, definitions(t, a), `"b":true`)
		require.NotContains(t, definitions(t, a), `"input":true`)
		require.Contains(t, definitions(t, a), `"type":"object"`)
	}
}

func TestStrictKeepsWithinTheLimitsOfASchema(t *testing.T) {
	enum := func(values, size int) string {
		var list []string
		for i := range values {
			list = append(list, fmt.Sprintf(`"%0*d"`, size, i))
		}
		return `{"type":"object","properties":{"a":{"type":"string","enum":[` + strings.Join(list, ",") + `]}},"required":["a"]}`
	}
	members := func(count, size int) string {
		var list []string
		for i := range count {
			list = append(list, fmt.Sprintf(`"a%0*d":{"type":"string"}`, size-1, i))
		}
		return `{"type":"object","properties":{` + strings.Join(list, ",") + `}}`
	}
	for input, want := range map[string]string{
		enum(1000, 4): "", enum(1001, 4): "1001 values in enums, more than 1000",
		enum(250, 61): "", enum(251, 60): "15060 characters in one long enum, more than 15000",
		members(5000, 5): "", members(5001, 5): "5001 members, more than 5000", members(4001, 30): "120030 characters in names and enums",
	} {
		_, why := strictly(t, OpenAIResponses, input)
		requireWhy(t, want, why, input[:40])
	}
}

func TestOllamaReadsOfTheArgumentsAsAWholeInTheToolsDescription(t *testing.T) {
	a, err := New(Ollama, made(t, "x", "X.", `{"type":"object","properties":{},"description":"All.","minProperties":1,"required":[]}`))
	require.NoError(t, err)
	same(t, `[{"type":"function","function":{"name":"x","description":"X. All. (minProperties: 1)","parameters":{"type":"object","properties":{}}}}]`, definitions(t, a))
}

// OpenAI wants the type of a constant said, which the constant says by itself.
func TestOpenAIsStrictModeGetsTheTypeOfAConstant(t *testing.T) {
	a, why := strictly(t, OpenAIChat, `{"type":"object","required":["a","b","c"],"properties":{
		"a":{"enum":["x",null]},"b":{"const":2},"c":{"type":["boolean"],"description":"C."}}}`)
	require.Empty(t, why)
	same(t, `[{"type":"function","function":{"name":"x","strict":true,"parameters":{"type":"object","additionalProperties":false,
		"required":["a","b","c"],"properties":{"a":{"enum":["x",null],"type":["string","null"]},"b":{"const":2,"type":"number"},
		"c":{"type":"boolean","description":"C."}}}}}]`, definitions(t, a))
}
