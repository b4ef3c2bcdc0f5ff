package sqlite

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/remit-dev/remit/revert/record"
)

// The write-ahead log as https://www.sqlite.org/fileformat2.html#walformat
// describes it: a header, then frames of a header and a page each. The checksum
// of a frame continues that of the frame before. The salts distinguish frames
// of this round from those of earlier ones, which follow them until they are
// overwritten.
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // the lowest bit is the byte order of the checksums
)

// logPlace is a position in a log: a number of frames of the round with these
// salts.
type logPlace struct {
	salts  string
	frames int64
}

// covers reports whether a log of this length contains all that another one
// had.
func (p logPlace) covers(was logPlace) bool {
	if was == (logPlace{}) {
		return p.frames == 0
	}
	return p.salts == was.salts && p.frames >= was.frames
}

type walChecksum [2]uint32

func (s walChecksum) plus(order binary.ByteOrder, data []byte) walChecksum {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
	return s
}

func sumAt(data []byte) walChecksum {
	return walChecksum{binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])}
}

// checkLog reads a write-ahead log that no process has open, before SQLite
// does. SQLite takes the first frame that does not fit for the end that a crash
// left, and drops the rest without a message. A killed process leaves such a
// frame without a commit after it, because frames are written in order and the
// commit last. So an unfit frame with a sound commit after it is ErrDamaged.
// checkLog returns how far SQLite will read.
func checkLog(path string) (place logPlace, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return place, nil
	}
	if err != nil {
		return place, err
	}
	place, err = readLog(bufio.NewReaderSize(f, 64<<10))
	return place, errors.Join(err, f.Close())
}

func readLog(r io.Reader) (place logPlace, err error) {
	head := make([]byte, logHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return place, whole(err)
	}
	place.salts = saltsOf(head)
	magic, size := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[8:])
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	if magic&^1 != logMagic || size < 512 || size > 1<<16 || size&(size-1) != 0 || (walChecksum{}).plus(order, head[:24]) != sumAt(head[24:]) {
		return place, fmt.Errorf("%w: the header of the write-ahead log does not fit its checksum: SQLite would drop the whole log, as cutting it to 0 bytes would", record.ErrDamaged)
	}
	frame := make([]byte, frameHeader+int(size))
	before, bad := sumAt(head[24:]), 0
	for n := 1; ; n++ {
		if _, err := io.ReadFull(r, frame); err != nil {
			return place, whole(err)
		}
		sound := string(frame[8:16]) == string(head[16:24]) && // the salts
			before.plus(order, frame[:8]).plus(order, frame[frameHeader:]) == sumAt(frame[16:])
		switch commit := binary.BigEndian.Uint32(frame[4:]) != 0; {
		case !sound && bad == 0:
			bad = n
		case sound && bad == 0 && commit:
			place.frames = int64(n)
		case sound && bad > 0 && commit:
			return place, fmt.Errorf("%w: frame %d of the write-ahead log does not fit its checksum, and frame %d behind it commits: SQLite would drop everything from frame %d on, as cutting the log to %d bytes would",
				record.ErrDamaged, bad, n, bad, logHeader+int64(bad-1)*int64(len(frame)))
		}
		// The stored checksum: the frame after a bad one may still fit.
		before = sumAt(frame[16:])
	}
}

// saltsOf returns the salts in the header of a log.
func saltsOf(head []byte) string { return hex.EncodeToString(head[16:24]) }

// whole treats the end of the log as its end, also inside a frame.
func whole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
