package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPipe: whatever a server writes, in whatever parts it comes, each line is read as the SDK reads it, and those are skipped at which the
// SDK ends. (The SDK takes two lists with notifications in them for one list that came twice; so there is none here.)
func TestPipe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(messages()), 0, 6).Draw(t, "lines")
		text := strings.Join(lines, "") + rapid.SampledFrom([]string{"", "", "\n", " ", "{", "]", "x", strings.TrimSpace(messages()[0])}).Draw(t, "end")
		chunks := rapid.Uint64().Draw(t, "chunks")
		have, why := all(t, stdioTransport{nowhere{}, inParts(text, chunks)})
		var want []string
		for line := range strings.Lines(text) {
			some, err := all(t, &sdk.IOTransport{Reader: inParts(strings.TrimSpace(line)+"\n", 1), Writer: nowhere{}, MaxLineLength: maxMessage})
			if errors.Is(err, io.EOF) {
				want = append(want, some...)
			}
		}
		require.Equal(t, want, have)
		require.ErrorIs(t, why, io.EOF)
	})
}

// messages are what a server may write, good and bad.
func messages() []string {
	answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":%s}`, result) + "\n" }
	long, longer := strings.Repeat("x", mostKept), strings.Repeat("x", 1<<20)
	return []string{
		answer(`{}`), answer(`{"content":[{"type":"text","text":"\u00e9 é \" \\ "}],"isError":true}`), answer(`{"a":1,"a":2}`), answer(`{"a":"` + long + `"}`), answer(`{"a":"` + longer + `"}`), answer(`null`), answer(`[1]`), answer(`"x"`),
		answer(`{"a": [1.0, -0, 1e3,	{}]}`), answer("{\"a\":\"\xff\"}"), answer("{\"a\":\n1}"), "\r\n" + strings.TrimSpace(answer(`{}`)) + "\r\n",
		`{"jsonrpc":"2.0","id":"7","result":{}}` + "\n", `{"jsonrpc":"2.0","id":7.0,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":-7,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":99999999999,"result":{}}` + "\n",
		`{"jsonrpc":"2.0","id":null,"result":{}}` + "\n", `{"jsonrpc":"2.0","result":{}}` + "\n", `{"jsonrpc":"1.0","id":7,"result":{}}` + "\n", `{"id":7,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":7}` + "\n",
		`{"JSONRPC":"2.0","id":7,"result":{}}` + "\n", `{"jsonrpc":"2.0","ID":8,"id":7,"Result":{},"result":{"b":1}}` + "\n", `{"jsonrpc":"2.0","id":7,"result":{},"id":8}` + "\n",
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":[1]}}` + "\n", `{"jsonrpc":"2.0","id":7,"result":{},"error":null}` + "\n", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}` + "\n",
		`{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + long + `"}}` + "\n", `{"jsonrpc":"2.0","id":7,"method":"","result":{}}` + "\n",
		`{"jsonrpc":"2.0","id":7,"method":null,"result":{}}` + "\n", `[` + strings.TrimSpace(answer(`{}`)) + `,{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"no"}}]` + "\n", "[]\n", `[{"jsonrpc":"2.0","id":7,"result":{}},5]` + "\n",
		"null\n", "5\n", "true\n", `"x"` + "\n", "hello\n", "\n", " \n",
	}
}

// all reads to the end, or to the first error.
func all(t require.TestingT, transport sdk.Transport) (texts []string, err error) {
	c, err := transport.Connect(context.Background())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return texts, err
		}
		text, err := jsonrpc.EncodeMessage(m)
		require.NoError(t, err)
		texts = append(texts, fmt.Sprintf("%T %s", m, text))
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

// parted hands out a text in parts of some size.
type parted struct {
	rest string
	rng  *rand.Rand
}

func inParts(text string, seed uint64) *parted { return &parted{text, rand.New(rand.NewPCG(seed, 0))} }

func (p *parted) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), 1+p.rng.IntN(1<<p.rng.IntN(22)))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *parted) Close() error { return nil }

// TestPipeSkips: a line that is no message is told of, once, and ends nothing but where who is told says so.
func TestPipeSkips(t *testing.T) {
	message := strings.TrimSpace(messages()[0])
	banners := []string{"hello\t{}", message + message, message + " x", `{"level":30,"msg":"ready"}`, "5", "\x1b[1mhi\xff"}
	from := "\n" + strings.Join(banners, "\r\n") + "\n" + message + "\n" + banners[0]
	c, err := stdioTransport{nowhere{}, io.NopCloser(strings.NewReader(from))}.Connect(t.Context())
	require.NoError(t, err)
	p, ok := c.(*stdioConn)
	require.True(t, ok)
	var told []string
	p.skipped = func(line []byte) error {
		if told = append(told, string(line)); len(told) > len(banners) {
			return errFlood
		}
		return nil
	}
	m, err := c.Read(t.Context())
	require.NoError(t, err)
	require.IsType(t, &jsonrpc.Response{}, m)
	require.Equal(t, banners, told)
	_, err = c.Read(t.Context())
	require.ErrorIs(t, err, errFlood)
}

// TestPipeGivesRoomBack: the room of a large message is given back, and nothing that was read behind it is lost.
func TestPipeGivesRoomBack(t *testing.T) {
	large := func(size int) string {
		return `{"jsonrpc":"2.0","id":7,"result":{"a":"` + strings.Repeat("x", size) + `"}}` + "\n"
	}
	text := large(8<<20) + strings.Repeat(large(2*mostKept)+large(1), 40)
	texts, err := all(t, stdioTransport{nowhere{}, io.NopCloser(strings.NewReader(text))})
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, texts, 81)
}

// TestPipeTooLong: a message that is too long ends the connection, and not the memory.
func TestPipeTooLong(t *testing.T) {
	text := `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	from := io.MultiReader(strings.NewReader(text), strings.NewReader(`{"jsonrpc":"2.0","method":"`), endless{})
	c, err := stdioTransport{nowhere{}, io.NopCloser(from)}.Connect(t.Context())
	require.NoError(t, err)
	_, err = c.Read(t.Context())
	require.NoError(t, err)
	_, err = c.Read(t.Context())
	require.ErrorIs(t, err, errLong)
}

type endless struct{}

func (endless) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = 'x'
	}
	return len(to), nil
}

// TestPipeCloses: who waits for a message, or to write one, does so no longer than the connection stands.
func TestPipeCloses(t *testing.T) {
	in, out := pipes(t)
	c, err := stdioTransport{in, out}.Connect(t.Context())
	require.NoError(t, err)
	ended := make(chan error, 3)
	go func() {
		_, err := c.Read(context.Background())
		ended <- err
	}()
	m := &jsonrpc.Request{Method: "x", Params: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for range 2 {
		go func() { ended <- c.Write(context.Background(), m) }()
	}
	pipe, ok := c.(*stdioConn)
	require.True(t, ok)
	busy := pipe.writing
	for len(busy) == 0 {
		runtime.Gosched()
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Write(short, m), context.Canceled)
	require.NoError(t, c.Close())
	for range 3 {
		require.Error(t, <-ended)
	}
}

// pipes are a pipe that nobody reads, and one that nobody writes.
func pipes(t *testing.T) (in *os.File, out *os.File) {
	t.Helper()
	var ends []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		ends = append(ends, r, w)
	}
	t.Cleanup(func() { _, _ = ends[0].Close(), ends[3].Close() })
	return ends[1], ends[2]
}

// TestEndedBeforeItAnswered: a server that ends at its start is told of in the same words, whichever side of its pipes was closed first.
func TestEndedBeforeItAnswered(t *testing.T) {
	for text, want := range map[string]bool{
		`calling "initialize": client is closing: EOF`:                                        true,
		`calling "initialize": client is closing: read |0: file already closed`:               true,
		`calling "initialize": client is closing: write |1: broken pipe`:                      true,
		`calling "initialize": client is closing: write |1: file already closed`:              true,
		`calling "initialize": client is closing: the answer has a member twice`:              false,
		`calling "initialize": client is closing: read tcp 127.0.0.1:1: connection timed out`: false,
	} {
		require.Equal(t, want, ended.MatchString(text), text)
	}
}
