package settings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/settings"
)

// TestLockedStaysLocked: however a user spells it, what the administrator locked is in force,
// or the tool is not configured, and the file that said otherwise is told.
func TestLockedStaysLocked(t *testing.T) {
	version := func(v string) tool.Tool {
		made, err := forecast(t, nil).Modify(func(s *tool.Spec) { s.Version = v })
		require.NoError(t, err)
		return made
	}
	for _, lock := range []string{
		`{"forecast":{"region":"us","token":"secret://weather"}}`,
		`{"forecast@2":{"region":"us","token":"secret://weather"}}`,
		`{"forecast":{"region":"us"},"forecast@2":{"token":"secret://weather"}}`,
		`{"forecast":{"region":"eu"},"forecast@2":{"region":"us","token":"secret://weather"}}`,
	} {
		for _, name := range []string{"forecast", "forecast@2", "forecast@1", "forecast@", "Forecast", "forecast@2 ", "f\\u006frecast", "forecast\\u0000"} {
			for _, setting := range []string{"region", "Region", "r\\u0065gion", " region", "region ", "REGION", "regiοn"} {
				for _, value := range []string{`"eu"`, `null`, `["eu"]`, `"EU"`, `"us "`} {
					what := fmt.Sprintf("%s, %s %s %s", lock, name, setting, value)
					user, err := settings.Read(settings.User, "user.json", fmt.Appendf(nil, `{"schemaVersion":1,"tools":{"%s":{"%s":%s,"days":4}}}`, name, setting, value))
					require.NoError(t, err, what)
					locked := read(t, settings.Locked, `{"schemaVersion":1,"by":"ops","tools":`+lock+`}`)
					tools, all, err := settings.Resolve(t.Context(), settings.Sources{Locked: locked, User: user}, version("2"), version("1"))
					if err != nil {
						require.ErrorContains(t, err, "there is no tool", what)
						continue
					}
					var in struct{ Region string }
					if !all[0].Configured {
						require.True(t, tools[0].Settings().IsAbsent(), what)
						require.NotEmpty(t, all[0].Problems, what)
						require.True(t, strings.HasPrefix(all[0].Problems[0].At, "user.json"), "%s: %+v", what, all[0].Problems)
						continue
					}
					require.NoError(t, json.Unmarshal(tools[0].Settings().OrEmpty(), &in))
					require.Equal(t, "us", in.Region, what)
				}
			}
		}
	}
}

// TestSettingsNeverRepeated: no problem with a value says the value.
func TestSettingsNeverRepeated(t *testing.T) {
	for _, values := range []string{
		`{"region":"` + token + `"}`, `{"days":"` + token + `"}`, `{"token":"` + token + `"}`, `{"token":"secret://` + token + `"}`,
		`{"token":["` + token + `"]}`, `{"region":{"` + "x" + `":"` + token + `"}}`, `{"days":31337.5}`,
	} {
		from := settings.Sources{Secrets: []string{"weather"}, User: read(t, settings.User, `{"schemaVersion":1,"tools":{"forecast":`+values+`}}`)}
		tools, all, err := settings.Resolve(t.Context(), from, forecast(t, nil))
		require.NoError(t, err)
		require.False(t, all[0].Configured, values)
		said, err := json.Marshal(all)
		require.NoError(t, err)
		for _, text := range []string{string(said), tools[0].NotConfiguredReason(), all[0].Problems[0].String()} {
			require.NotContains(t, text, token)
			require.NotContains(t, text, "31337")
		}
	}
	from := settings.Sources{}
	for name, value := range map[string]string{"region": `"` + token + `"`, "days": `"` + token + `"`, "token": `"` + token + `"`} {
		_, err := from.Set(forecast(t, nil), name, json.RawMessage(value))
		require.Error(t, err)
		require.NotContains(t, err.Error(), token)
	}
}
