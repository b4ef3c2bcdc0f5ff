package state

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// FuzzServices: the order of members and spaces do not change a file of
// services. An unknown member is an error.
func FuzzServices(f *testing.F) {
	for _, seed := range []string{
		`{"allow":["127.0.0.1:8080"],"secrets":{"token":"env:TOKEN"},"credentials":[{"secret":"token","origin":"https://api.example.com","header":"Authorization","prefix":"Bearer "}]}`,
		`{"calls":[{"name":"make","description":"Make one.","method":"POST","url":"https://a.b/v1"}],"media":["application/json"]}`,
		`{"ca":"ca.pem","identity":"id.txt"}`, `{"Allow":[]}`, `{"allow":["x"],"allow":[]}`, `{"allow":null}`, `[]`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s servicesFile
		if canon.Decode(text, &s) != nil {
			return
		}
		sorted, err := canon.Canonicalize(text, canon.DefaultLimits())
		require.NoError(t, err)
		var again servicesFile
		require.NoError(t, canon.Decode(sorted, &again))
		require.Equal(t, s, again)
		more := bytes.Replace(sorted, []byte("{"), []byte(`{"aaa":1,`), 1)
		require.Error(t, canon.Decode(bytes.Replace(more, []byte(",}"), []byte("}"), 1), &again), "%s", more)
	})
}
