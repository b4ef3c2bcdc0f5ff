package render

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnce(t *testing.T) {
	for in, want := range map[string]string{
		"there is no such file: open a.txt: no such file": "there is no such file: open a.txt",
		"the disk is full: write a: the disk is full":     "the disk is full: write a",
		`want "x": "x"`:            `want "x": "x"`,
		"a: b: a":                  "a: b: a",
		"one thing: another thing": "one thing: another thing",
		"":                         "",
	} {
		require.Equal(t, want, Once(in))
	}
}
