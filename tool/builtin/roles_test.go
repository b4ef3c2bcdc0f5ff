package builtin_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestRoles: each argument of the built-in tools has a role that its author chose,
// and nothing that they return is trusted.
func TestRoles(t *testing.T) {
	want := map[string]string{ // authority, content, selector
		"file_read":   "path root | | limit offset",
		"file_list":   "path root | | page recursive",
		"file_search": "path root | | glob literal page pattern",
		"file_write":  "mode path root | content if_absent parents |",
		"file_edit":   "path root | all new old |",
		"file_delete": "path recursive root | |",
		"file_move":   "from root to | |",
		"file_copy":   "from root to | |",
		"dir_create":  "path root | |",
		"process_run": "argv cwd env stdin timeout_s | |",
		"shell_run":   "cwd script shell timeout_s | |",
		"sql_query":   "database | | max_rows page params sql",
		"sql_execute": "database params sql | | max_rows",
		"http_fetch":  "headers idempotency_key method url | body |",
	}
	for _, one := range slices.Concat(builtin.Files(), builtin.Programs(), builtin.NetworkPrograms(), builtin.Databases(), builtin.Web()) {
		var input struct{ Properties map[string]any }
		require.NoError(t, json.Unmarshal(one.InputSchema(), &input))
		by := map[provenance.Role][]string{}
		s := one.Spec()
		for _, name := range slices.Sorted(maps.Keys(input.Properties)) {
			role := s.Roles["/"+name]
			if role == "" {
				role = provenance.Authority
			}
			by[role] = append(by[role], name)
		}
		texts := func(r provenance.Role) string { return strings.Join(by[r], " ") }
		got := strings.Join([]string{texts(provenance.Authority), texts(provenance.Payload), texts(provenance.Selector)}, " | ")
		require.Equal(t, strings.Fields(want[one.Name()]), strings.Fields(got), one.Name())
		if c := s.OutputContent; c != nil {
			require.NotEqual(t, provenance.Trusted, c.Trust, one.Name())
			require.Empty(t, c.Fields, one.Name())
		}
	}
}

// TestRolesOfACallOfAService: its arguments have the roles that it says.
func TestRolesOfACallOfAService(t *testing.T) {
	call := builtin.HTTPCall{Name: "note", Method: "POST", URL: "https://api.example.com/v1/{item}/notes", Input: json.RawMessage(
		`{"type":"object","properties":{"item":{"type":"string"},"text":{"type":"string"}},"additionalProperties":false}`)}
	call.Roles = provenance.Roles{"/text": provenance.Payload}
	made, err := builtin.HTTPTool(call)
	require.NoError(t, err)
	require.Equal(t, call.Roles, made.Spec().Roles)
	call.Roles = provenance.Roles{"/txt": provenance.Payload}
	_, err = builtin.HTTPTool(call)
	require.ErrorContains(t, err, `role of argument "/txt": "txt" is not known, did you mean "text"?`)
}
