package gateway

import (
	"bufio"
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

// stdioTransport is a transport over a server's standard files. It is the SDK's own, but that an answer is read in one pass, by whoever
// waits for messages, that a server may send several in one list in any revision, and that a line which is no message ends nothing.
type stdioTransport struct {
	in  io.WriteCloser
	out io.ReadCloser
}

// Connect begins to read.
func (p stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	return &stdioConn{stdioTransport: p, from: bufio.NewReaderSize(p.out, mostKept), writing: make(chan struct{}, 1)}, nil
}

// stdioConn is the connection of a pipe.
type stdioConn struct {
	stdioTransport

	from    *bufio.Reader           // only the one reader has these
	more    []jsonrpc.Message       // of a list, not handed on yet
	skipped func(line []byte) error // told of each line that is no message; an error ends the connection; nil: nobody is

	writing chan struct{} // one at a time writes; for as long as the server does not read, nobody else
	closing sync.Once
	closed  error
}

// Read waits for a message. Close ends the wait; the context does not.
func (p *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for len(p.more) == 0 {
		line, err := p.next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		if p.more, err = readMessages(line); err != nil {
			p.more = nil
			if p.skipped == nil {
				continue
			}
			if err := p.skipped(line); err != nil {
				return nil, err
			}
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

// next is the next line as it came, without the space around it. The last one needs no end.
func (p *stdioConn) next() (line []byte, err error) {
	for {
		part, err := p.from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxMessage {
			return nil, errLong
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
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

var errNoMessage = errors.New("the line is not one value of JSON")

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
	if !raw.IsValid(asItIs) { // such as two messages on one line, of which the SDK would read the first
		return nil, errNoMessage
	}
	return jsonrpc.DecodeMessage(raw)
}

// Write writes one message as a line. The context ends the wait for others, not what has begun: half a line would be the end of the
// connection.
func (p *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return p.line(ctx, data, new(atomic.Bool))
}

// request writes a request whose parameters are JSON, unless sent says that it is not to be sent any more.
func (p *stdioConn) request(ctx context.Context, id int64, method string, params []byte, sent *atomic.Bool) error {
	return p.line(ctx, fmt.Appendf(make([]byte, 0, len(params)+len(method)+64), `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), sent)
}

func (p *stdioConn) line(ctx context.Context, data []byte, sent *atomic.Bool) error {
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
func (p *stdioConn) Close() error {
	p.closing.Do(func() { p.closed = errors.Join(p.in.Close(), p.out.Close()) })
	return p.closed
}

// SessionID is empty: a pipe has none.
func (*stdioConn) SessionID() string { return "" }
