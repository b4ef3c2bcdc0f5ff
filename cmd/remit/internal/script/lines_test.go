package script

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzScript: a script has the lines that are not blank, with their numbers,
// for any sizes of reads.
func FuzzScript(f *testing.F) {
	f.Add([]byte("a\n\n b \r\nc"), uint8(1))
	f.Add([]byte("\n\n\n"), uint8(3))
	f.Add([]byte{}, uint8(0))
	f.Add(bytes.Repeat([]byte("x"), 5000), uint8(255))
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		done := make(chan struct{})
		defer close(done)
		var got []line
		for l := range readLines(&pieces{rest: text, size: int(piece) + 1}, done) {
			got = append(got, l)
		}
		var want []line
		for i, l := range bytes.Split(text, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) > 0 {
				want = append(want, line{n: i + 1, text: l})
			}
		}
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, want[i].n, got[i].n)
			require.Equal(t, string(want[i].text), string(got[i].text))
		}
	})
}

// pieces returns a few bytes per read.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	n := min(p.size, len(p.rest), len(to))
	copy(to, p.rest[:n])
	p.rest = p.rest[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestLongLines(t *testing.T) {
	text := "{}\n" + strings.Repeat("x", maxLine+1) + "\n\n{\"last\":1}"
	done := make(chan struct{})
	defer close(done)
	var got []line
	for l := range readLines(strings.NewReader(text), done) {
		got = append(got, l)
	}
	require.Len(t, got, 3)
	require.Equal(t, "{}", string(got[0].text))
	require.True(t, got[1].long)
	require.Empty(t, got[1].text)
	require.Equal(t, line{n: 4, text: []byte(`{"last":1}`)}, got[2])
	_, err := got[1].step()
	require.ErrorContains(t, err, "24 MiB")
}
