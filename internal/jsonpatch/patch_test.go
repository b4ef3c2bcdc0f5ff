package jsonpatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonpatch"
)

func parse(t *testing.T, text string) canon.Value {
	v, err := canon.Parse([]byte(text), canon.DefaultLimits())
	require.NoError(t, err)
	return v
}

// TestApply uses the examples of RFC 6902, appendix A, and further cases.
func TestApply(t *testing.T) {
	for _, tt := range []struct{ name, doc, patch, want, refused string }{
		{"A.1 add a member", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`, ""},
		{"A.2 add an element", `{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`, ""},
		{"A.3 remove a member", `{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`, ""},
		{"A.4 remove an element", `{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`, ""},
		{"A.5 replace", `{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`, ""},
		{"A.6 move", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`, ""},
		{"A.7 move an element", `{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`, ""},
		{"A.8 test", `{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2.0}]`, `{"baz":"qux","foo":["a",2,"c"]}`, ""},
		{"A.9 a failed test", `{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, "", `operation 1, "test" "/baz": the test failed`},
		{"A.10 add nested", `{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"child":{"grandchild":{}},"foo":"bar"}`, ""},
		{"A.11 a member of no use", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, "", `add has no member "xyz"`},
		{"A.12 add into nothing", `{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, "", `operation 1, "add" "/baz/bat": there is nothing at this place`},
		{"A.13 a member twice", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","op":"remove"}]`, "", "the patch: "},
		{"A.14 escapes", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`, ""},
		{"A.15 a text is no number", `{"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, "", "the test failed"},
		{"A.16 append", `{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`, ""},

		{"copy is a copy", `{"a":{"b":[1]}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/0","value":0}]`, `{"a":{"b":[1]},"c":{"b":[0,1]}}`, ""},
		{"the whole", `{"a":1}`, `[{"op":"replace","path":"","value":[1]}]`, `[1]`, ""},
		{"the whole, removed", `{"a":1}`, `[{"op":"remove","path":""}]`, "", "whole document"},
		{"inside a list", `{"a":[{"b":1}]}`, `[{"op":"replace","path":"/a/0/b","value":null},{"op":"replace","path":"/a/0/b","value":2}]`, `{"a":[{"b":2}]}`, ""},
		{"replace nothing", `{}`, `[{"op":"replace","path":"/a","value":1}]`, "", "there is nothing"},
		{"remove nothing", `{}`, `[{"op":"remove","path":"/a"}]`, "", "there is nothing"},
		{"into a text", `{"a":"b"}`, `[{"op":"add","path":"/a/b","value":1}]`, "", "there is nothing"},
		{"test into a text", `{"a":"b"}`, `[{"op":"test","path":"/a/b","value":1}]`, "", "there is nothing"},
		{"beyond the end", `[1]`, `[{"op":"add","path":"/2","value":1}]`, "", "there is nothing"},
		{"the end, replaced", `[1]`, `[{"op":"replace","path":"/-","value":1}]`, "", "named by its number"},
		{"a leading zero", `[1,2]`, `[{"op":"remove","path":"/01"}]`, "", "named by its number"},
		{"a number below zero", `[1,2]`, `[{"op":"remove","path":"/-1"}]`, "", "named by its number"},
		{"a list by a name, further in", `[[1]]`, `[{"op":"add","path":"/x/0","value":1}]`, "", "named by its number"},
		{"into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, "", "into itself"},
		{"to where it is", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":{"b":1}}`, ""},
		{"move nothing", `{}`, `[{"op":"move","from":"/a","path":"/b"}]`, "", `"from": there is nothing`},
		{"copy nothing", `{}`, `[{"op":"copy","from":"/a","path":"/b"}]`, "", `"from": there is nothing`},
		{"no operation", `{}`, `[{"op":"ad","path":"/a","value":1}]`, "", "is none of add"},
		{"no object", `{}`, `[1]`, "", "is none of add"},
		{"no value", `{}`, `[{"op":"add","path":"/a"}]`, "", `"value" is missing`},
		{"a value too many", `{"a":1}`, `[{"op":"remove","path":"/a","value":1}]`, "", `remove has no member "value"`},
		{"no path", `{}`, `[{"op":"add","value":1}]`, "", `"path" is missing`},
		{"no slash", `{}`, `[{"op":"add","path":"a","value":1}]`, "", `does not begin with "/"`},
		{"half an escape", `{}`, `[{"op":"add","path":"/~2","value":1}]`, "", "neither"},
		{"no from", `{}`, `[{"op":"copy","path":"/a"}]`, "", `"from" is missing`},
		{"no list", `{}`, `{"op":"copy","path":"/a"}`, "", "not a list"},
		{"the second is wrong", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]`, "", `operation 2, "remove" "/a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jsonpatch.Apply(parse(t, tt.doc), []byte(tt.patch))
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got.Canonical()))
		})
	}
}

// TestCopiesThatGrow uses copies that each double the document.
func TestCopiesThatGrow(t *testing.T) {
	patch := `[{"op":"add","path":"/b","value":1}`
	for range 60 {
		patch += `,{"op":"copy","from":"","path":"/a/-"}`
	}
	_, err := jsonpatch.Apply(parse(t, `{"a":[]}`), []byte(patch+"]"))
	require.ErrorContains(t, err, "too large")
}

func TestDifferences(t *testing.T) {
	all := jsonpatch.Differences(parse(t, `{"a":[1,{"x":2}],"b":[1],"c~":1,"same":{"y":1.0}}`), parse(t, `{"a":[1,{"x":3}],"b":[1,2],"d/":null,"same":{"y":1}}`))
	var got []string
	for _, c := range all {
		got = append(got, c.Path+" "+string(c.Before.Canonical())+" "+string(c.After.Canonical()))
	}
	require.Equal(t, []string{"/a/1/x 2 3", "/b [1] [1,2]", "/c~0 1 ", "/d~1  null"}, got)
}
