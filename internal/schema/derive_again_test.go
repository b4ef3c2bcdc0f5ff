package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A type's schema is made once. Each caller owns its document, and whoever compiles that document gets the same schema.
func TestDerivedOnce(t *testing.T) {
	type input struct {
		Path string `json:"path"`
	}
	doc, err := ForType[input]()
	require.NoError(t, err)
	first, err := Compile(doc)
	require.NoError(t, err)
	again, err := Compile(doc)
	require.NoError(t, err)
	require.Same(t, first, again)

	clear(doc)
	doc, err = ForType[*input]()
	require.NoError(t, err)
	again, err = Compile(doc)
	require.NoError(t, err)
	require.Same(t, first, again, "a caller that changes its document changes nobody else's")

	require.Less(t, testing.AllocsPerRun(10, func() {
		doc, _ := ForType[input]()
		_, _ = Compile(doc)
	}), 10.0)

	other := []byte(`{"type":"object"}`)
	first, err = Compile(other)
	require.NoError(t, err)
	again, err = Compile(other)
	require.NoError(t, err)
	require.NotSame(t, first, again, "documents that no type became are not kept")
}
