package sqlite

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/record"
)

// FuzzWriteAheadLog checks logs in SQLite's format. Every prefix is a possible
// result of a crash. A changed byte is damage if a commit follows its frame,
// and otherwise at most the end of the log.
func FuzzWriteAheadLog(f *testing.F) {
	f.Add([]byte{1, 0, 2}, uint16(700), uint8(1), uint16(0), true)
	f.Add([]byte{0, 0, 1}, uint16(40), uint8(255), uint16(33), false)
	f.Add([]byte{1}, uint16(5), uint8(0), uint16(9), true)
	f.Add([]byte{}, uint16(31), uint8(1), uint16(32), true)
	f.Fuzz(func(t *testing.T, frames []byte, at uint16, flip uint8, cut uint16, big bool) {
		if len(frames) > 8 {
			t.Skip()
		}
		log := walOf(frames, big)
		_, err := readLog(bytes.NewReader(log))
		require.NoError(t, err)
		_, err = readLog(bytes.NewReader(log[:int(cut)%(len(log)+1)]))
		require.NoError(t, err)
		if flip == 0 {
			return
		}
		place := int(at) % len(log)
		log[place] ^= flip
		_, err = readLog(bytes.NewReader(log))
		frame := (place - logHeader) / (frameHeader + 512)
		switch {
		case place < logHeader:
			require.ErrorIs(t, err, record.ErrDamaged)
		case bytes.ContainsFunc(frames[frame+1:], func(r rune) bool { return r == 1 }):
			require.ErrorIs(t, err, record.ErrDamaged, "frame %d of %v, byte %d", frame, frames, (place-logHeader)%(frameHeader+512))
		default:
			require.NoError(t, err, "nothing that was acknowledged is behind it")
		}
	})
}

// FuzzLogBytes checks that nothing panics, and that a log with a wrong header,
// which SQLite would drop without a message, never counts as complete.
func FuzzLogBytes(f *testing.F) {
	f.Add(walOf([]byte{1, 1}, true))
	f.Add(walOf([]byte{0, 1}, false)[:600])
	f.Add([]byte("no log"))
	f.Fuzz(func(t *testing.T, log []byte) {
		_, err := readLog(bytes.NewReader(log))
		if len(log) < logHeader {
			require.NoError(t, err)
			return
		}
		size := binary.BigEndian.Uint32(log[8:])
		if err == nil {
			require.Contains(t, []uint32{logMagic, logMagic | 1}, binary.BigEndian.Uint32(log))
			require.True(t, size >= 512 && size&(size-1) == 0)
			return
		}
		require.ErrorIs(t, err, record.ErrDamaged)
	})
}

// walOf returns a log with pages of 512 bytes, one for each byte: 1 commits. It
// follows the description of the format and uses no code under test.
func walOf(frames []byte, big bool) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	magic := uint32(0x377f0682)
	if big {
		order, magic = binary.BigEndian, magic|1
	}
	sum := func(a, b uint32, data []byte) (uint32, uint32) {
		for i := 0; i < len(data); i += 8 {
			a += order.Uint32(data[i:]) + b
			b += order.Uint32(data[i+4:]) + a
		}
		return a, b
	}
	log := make([]byte, 32)
	for i, v := range []uint32{magic, 3007000, 512, 1, 0x01020304, 0x05060708} {
		binary.BigEndian.PutUint32(log[4*i:], v)
	}
	a, b := sum(0, 0, log[:24])
	binary.BigEndian.PutUint32(log[24:], a)
	binary.BigEndian.PutUint32(log[28:], b)
	for n, kind := range frames {
		frame := make([]byte, 24+512)
		binary.BigEndian.PutUint32(frame, uint32(n+1))
		if kind == 1 {
			binary.BigEndian.PutUint32(frame[4:], uint32(n+1))
		}
		copy(frame[8:], log[16:24])
		for i := range 512 {
			frame[24+i] = byte(i * (n + 3) * int(kind+1))
		}
		a, b = sum(a, b, frame[:8])
		a, b = sum(a, b, frame[24:])
		binary.BigEndian.PutUint32(frame[16:], a)
		binary.BigEndian.PutUint32(frame[20:], b)
		log = append(log, frame...)
	}
	return log
}
