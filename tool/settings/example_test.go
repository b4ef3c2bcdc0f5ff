package settings_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/settings"
)

func Example() {
	greet, err := tool.CreateWith("greet", "Greets.", nil, func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		s, err := settings.Of[struct {
			Word string `json:"word"`
		}](ctx, tc)
		return s.Word + " " + in, err
	}, tool.Pure(), func(s *tool.Spec) {
		s.Settings = tool.Params{{Name: "word", Type: "string", Default: "Hello"}}
	})
	if err != nil {
		panic(err)
	}
	locked, err := settings.Read(settings.Locked, "locked.json", []byte(`{"schemaVersion": 1, "by": "ops", "tools": {"greet": {"word": "Moin"}}}`))
	if err != nil {
		panic(err)
	}
	from := settings.Sources{Locked: locked}
	_, all, err := settings.Resolve(context.Background(), from, greet)
	if err != nil {
		panic(err)
	}
	for _, v := range all[0].Values {
		fmt.Println(v.Name, string(v.Value), v.Layer, v.By, v.At)
	}
	_, err = from.Set(greet, "word", []byte(`"Hi"`))
	fmt.Println(err)
	// Output:
	// word "Moin" locked ops locked.json:1:63
	// tool "greet": setting "word": the setting is locked by ops (locked.json:1:63)
}
