package process

// capture keeps the start and the end of a stream.
type capture struct {
	most    int // maximum number of kept bytes
	head    []byte
	tail    []byte // a ring with the last bytes after head
	at      int    // start of the ring when it is full
	dropped int64
}

func (c *capture) add(p []byte) {
	if room := c.most/2 - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	size := c.most - c.most/2
	if over := len(p) - size; over > 0 {
		c.dropped += int64(over)
		p = p[over:]
	}
	for len(p) > 0 {
		if len(c.tail) < size {
			n := min(size-len(c.tail), len(p))
			c.tail = append(c.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(c.tail[c.at:], p)
		c.dropped += int64(n)
		c.at = (c.at + n) % size
		p = p[n:]
	}
}

func (c *capture) bytes() []byte {
	all := append([]byte{}, c.head...)
	return append(append(all, c.tail[c.at:]...), c.tail[:c.at]...)
}
