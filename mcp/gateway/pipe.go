package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	wire "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pipe is a transport over a server's standard files. It is the SDK's own, but that an answer is read in one pass, by whoever
// waits for messages, and that a server may send several in one list in any revision.
type pipe struct {
	in  io.WriteCloser
	out io.ReadCloser
}

// Connect begins to read.
func (p pipe) Connect(context.Context) (sdk.Connection, error) {
	c := &piped{pipe: p, bound: &bounded{from: p.out}, writing: make(chan struct{}, 1)}
	c.from = c.bound
	c.dec = jsontext.NewDecoder(c.from, asItIs)
	return c, nil
}

// piped is the connection of a pipe.
type piped struct {
	pipe

	bound *bounded // only the one reader has these
	from  io.Reader
	dec   *jsontext.Decoder
	more  []jsonrpc.Message // of a list, not handed on yet

	writing chan struct{} // one at a time writes; for as long as the server does not read, nobody else
	closing sync.Once
	closed  error
}

var errTrailing = errors.New("there is something behind a message on its line")

// Read waits for a message. Close ends the wait; the context does not.
func (p *piped) Read(context.Context) (jsonrpc.Message, error) {
	if len(p.more) == 0 {
		raw, err := p.next()
		if err != nil {
			return nil, err
		}
		if p.more, err = readMessages(raw); err != nil {
			return nil, err
		}
	}
	m := p.more[0]
	p.more = p.more[1:]
	return m, nil
}

// asItIs leaves it to whoever the message is for whether texts are valid and members are there once.
var asItIs = wire.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// mostKept bounds the room that is kept for the next message.
const mostKept = 64 << 10

// next is the next message as it came.
func (p *piped) next() (jsontext.Value, error) {
	p.bound.left = maxMessage
	value, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	rest := p.dec.UnreadBuffer()
	if len(rest) > 0 && rest[0] != '\n' && rest[0] != '\r' {
		return nil, errTrailing
	}
	value = bytes.Clone(value)
	if len(value) > mostKept { // a decoder keeps the room of its largest value
		p.from = io.MultiReader(bytes.NewReader(bytes.Clone(rest)), p.from)
		p.dec = jsontext.NewDecoder(p.from, asItIs)
	}
	return value, nil
}

// readMessages reads what one or several messages were sent as.
func readMessages(raw jsontext.Value) (all []jsonrpc.Message, err error) {
	each := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		if err := wire.Unmarshal(raw, &each, asItIs); err != nil {
			return nil, err
		}
	}
	for _, one := range each {
		m, err := readMessage(one)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, errors.New("a list of messages is empty")
	}
	return all, nil
}

// readMessage reads a message. A plain answer is read here, and everything else by the SDK.
func readMessage(raw jsontext.Value) (jsonrpc.Message, error) {
	var m struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  jsontext.Value `json:"method"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if err := wire.Unmarshal(raw, &m, asItIs); err == nil && m.Version == "2.0" && m.Method == nil && m.Error == nil {
		if n, err := strconv.ParseInt(string(m.ID), 10, 32); err == nil {
			id, err := jsonrpc.MakeID(float64(n))
			return &jsonrpc.Response{ID: id, Result: []byte(m.Result)}, err
		}
	}
	return jsonrpc.DecodeMessage(raw)
}

// Write writes one message as a line. The context ends the wait for others, not what has begun: half a line would be the end of the
// connection.
func (p *piped) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.line(ctx, data, new(atomic.Bool))
}

// request writes a request whose parameters are JSON, unless sent says that it is not to be sent any more.
func (p *piped) request(ctx context.Context, id int64, method string, params []byte, sent *atomic.Bool) error {
	return p.line(ctx, fmt.Appendf(make([]byte, 0, len(params)+len(method)+64), `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), sent)
}

func (p *piped) line(ctx context.Context, data []byte, sent *atomic.Bool) error {
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errUnsent, ctx.Err())
	}
	defer func() { <-p.writing }()
	if !sent.CompareAndSwap(false, true) {
		return errUnsent
	}
	_, err := p.in.Write(append(data, '\n'))
	return err
}

// Close closes both files, which ends what waits for them.
func (p *piped) Close() error {
	p.closing.Do(func() { p.closed = errors.Join(p.in.Close(), p.out.Close()) })
	return p.closed
}

// SessionID is empty: a pipe has none.
func (*piped) SessionID() string { return "" }

// bounded reads no more of one message than there may be.
type bounded struct {
	from io.Reader
	left int
}

// Read reads.
func (b *bounded) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.from.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}
