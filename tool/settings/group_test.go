package settings_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/settings"
)

// weatherTool is a tool of the group "weather".
func weatherTool(t *testing.T, name string, tags ...string) tool.Tool {
	made, err := tool.FromSpec(tool.Spec{
		Name: name, Description: "Tells the weather.", Tags: tags,
		Settings: tool.Params{{Name: "region", Type: "string", Default: "eu"}, {Name: "units", Type: "string", Required: true}},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("fine"), nil
		},
	})
	require.NoError(t, err)
	return made
}

// TestPresetsAndGroups: the organisation sets what a user may set otherwise, for one tool or for all with a tag; what is
// locked for a tag is locked for each of them.
func TestPresetsAndGroups(t *testing.T) {
	ctx := context.Background()
	read := func(layer settings.Layer, text string) settings.File {
		f, err := settings.Read(layer, string(layer)+".json", []byte(text))
		require.NoError(t, err)
		return f
	}
	from := settings.Sources{
		Preset: read(settings.Preset, `{"schemaVersion": 1, "by": "acme", "tags": {"weather": {"region": "us", "units": "metric"}}, "tools": {"radar": {"region": "asia"}}}`),
		User:   read(settings.User, `{"schemaVersion": 1, "tools": {"forecast": {"region": "mars"}}}`),
	}
	forecast, radar := weatherTool(t, "forecast", "weather"), weatherTool(t, "radar", "weather", "maps")
	tools, status, err := settings.Resolve(ctx, from, forecast, radar)
	require.NoError(t, err)
	require.JSONEq(t, `{"region": "mars", "units": "metric"}`, string(tools[0].Settings().OrEmpty()), "the user's own, and the rest of the organisation")
	require.JSONEq(t, `{"region": "asia", "units": "metric"}`, string(tools[1].Settings().OrEmpty()), "the name before the tag")
	require.Equal(t, settings.Value{Name: "units", Value: json.RawMessage(`"metric"`), Layer: settings.Preset, By: "acme", At: "preset.json:1:82"}, status[0].Values[1])

	from.User, err = from.Set(tools[1], "region", json.RawMessage(`"moon"`))
	require.NoError(t, err, "a preset is no lock")
	tools, _, err = settings.Resolve(ctx, from, forecast, radar)
	require.NoError(t, err)
	require.JSONEq(t, `{"region": "moon", "units": "metric"}`, string(tools[1].Settings().OrEmpty()))

	from.Locked = read(settings.Locked, `{"schemaVersion": 1, "by": "ops", "tags": {"maps": {"region": "eu"}}}`)
	_, status, err = settings.Resolve(ctx, from, forecast, radar)
	require.NoError(t, err)
	require.True(t, status[0].Configured)
	require.Equal(t, "locked", status[1].Problems[0].Check)
	_, err = from.Set(radar, "region", json.RawMessage(`"us"`))
	require.ErrorIs(t, err, settings.ErrLocked)

	from.Locked = read(settings.Locked, `{"schemaVersion": 1, "by": "ops", "tags": {"maps": {"units": "a"}, "weather": {"units": "b"}}}`)
	_, status, err = settings.Resolve(ctx, from, forecast, radar)
	require.NoError(t, err)
	require.Equal(t, "twice", status[1].Problems[0].Check)
	require.Contains(t, status[1].Problems[0].Why, "two tags of the tool give it different values")

	for says, text := range map[string]string{
		`there is no tool with tag "wether" that has settings`: `{"schemaVersion": 1, "tags": {"wether": {"units": "a"}}}`,
		`no tool with tag "weather" has a setting "unit"`:      `{"schemaVersion": 1, "tags": {"weather": {"unit": "a"}}}`,
	} {
		_, _, err = settings.Resolve(ctx, settings.Sources{User: read(settings.User, text)}, forecast, radar)
		require.ErrorContains(t, err, says)
	}
	written, err := from.Preset.JSON()
	require.NoError(t, err)
	again := read(settings.Preset, string(written))
	require.Equal(t, written, func() []byte { out, err := again.JSON(); require.NoError(t, err); return out }())
}
