package main

import (
	"fmt"
	"sync"
)

// writtenCalls is the number of calls whose bytes written counts. So many calls
// fill the write-ahead log more than once. So SQLite also copies the log into
// the database.
const writtenCalls = 8_192

// written compares the bytes that a durable call writes, by 1 caller and by 64,
// with one kilobyte. It counts the bytes of all write calls of this process. The
// sessions and transactions are begun before.
func written(durable func(caller int) error) ([]promiseRow, error) {
	if _, ok := writtenBytes(); !ok { // this system does not count them
		return nil, nil
	}
	var rows []promiseRow
	for _, of := range []struct {
		callers int
		target  float64
	}{{1, 6}, {many, 2}} {
		kb, err := bytesPerCall(of.callers, durable)
		if err != nil {
			return nil, err
		}
		rows = append(rows, promiseRow{
			Suite: "durable", What: fmt.Sprintf("kilobytes written per durable call, callers: %d", of.callers), Ratio: kb, Target: of.target, Met: kb <= of.target,
			Of: fmt.Sprintf("%.1f KB", kb), To: "1 KB",
		})
	}
	return rows, nil
}

// bytesPerCall returns how many kilobytes a call writes.
func bytesPerCall(callers int, op func(caller int) error) (float64, error) {
	before, _ := writtenBytes()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range writtenCalls / callers {
				if errs[i] = op(i); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	after, _ := writtenBytes()
	return float64(after-before) / float64(writtenCalls) / 1000, nil
}
