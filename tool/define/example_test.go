package define_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing/fstest"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
)

func ExampleLoad() {
	files := fstest.MapFS{"upper.json": {Data: []byte(`{
  "schemaVersion": 1,
  "id": "com.example.upper",
  "version": "1.0.0",
  "implementation": "example/upper",
  "function": {"name": "upper", "description": "Upper-cases a text."},
  "effectClass": "pure"
}`)}}
	upper := define.Implementation{Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
		return tool.Text("…"), nil
	}}
	tools, err := define.Load(files, map[string]define.Implementation{"example/upper": upper})
	if err != nil {
		panic(err)
	}
	fmt.Println(tools[0].QualifiedName(), tools[0].Class(), tools[0].Spec().Provenance.Name)
	_, err = define.Load(files, map[string]define.Implementation{"example/uper": upper})
	fmt.Println(err)
	// Output:
	// upper@1.0.0 pure upper.json
	// upper.json:5:21: there is no implementation "example/upper"; did you mean "example/uper"?
}
