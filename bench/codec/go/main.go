// The Go library klauspost/reedsolomon for `../compare`: one turn a line on standard input, its speed on standard output.
//
//	encode|decode K M CELL MEMORY THREADS MILLISECONDS
//
// MEMORY is how many bytes of stripes are used in turn; 0 is one stripe again and again. The answer is GB of data a
// second: of one thread by its processor time, of several together by the clock. `decode` rebuilds the first M units.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

// A page between cells, as an allocator leaves one between large buffers.
const page = 4096

type work struct {
	decode  bool
	k, m    int
	cell    int
	memory  int
	threads int
}

// Stripes of one thread, used in turn.
type stripes struct {
	work  work
	bytes []byte
	start int
	count int
	next  int
}

func newStripes(w work) *stripes {
	length := (w.k + w.m) * (w.cell + page)
	count := w.memory / w.threads / length
	if count == 0 {
		count = 1
	}
	s := &stripes{work: w, count: count, bytes: make([]byte, count*length+2*page)}
	state := uint64(1)
	for i := 0; i+8 <= len(s.bytes); i += 8 {
		state = state*6364136223846793005 + 1442695040888963407
		*(*uint64)(unsafe.Pointer(&s.bytes[i])) = state ^ state>>29
	}
	s.start = page - int(uintptr(unsafe.Pointer(&s.bytes[0]))%page)
	return s
}

func (s *stripes) cells() [][]byte {
	w := s.work
	at := s.start + s.next*(w.k+w.m)*(w.cell+page)
	s.next = (s.next + 1) % s.count
	cells := make([][]byte, w.k+w.m)
	for i := range cells {
		cells[i] = s.bytes[at : at+w.cell : at+w.cell]
		at += w.cell + page
	}
	return cells
}

func processorSeconds() float64 {
	const threadCPU = 3
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec) + float64(t.Nsec)/1e9
}

func seconds(w work, begin time.Time) float64 {
	if w.threads == 1 {
		return processorSeconds()
	}
	return time.Since(begin).Seconds()
}

// Bytes of data of one thread in one turn, and its seconds.
func (s *stripes) turn(code reedsolomon.Encoder, length float64) (float64, float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w, begin, calls := s.work, time.Now(), 0
	start := seconds(w, begin)
	for {
		for i := 0; i < 4; i++ {
			cells := s.cells()
			var err error
			if w.decode {
				for lost := 0; lost < w.m; lost++ {
					cells[lost] = cells[lost][:0]
				}
				err = code.ReconstructData(cells)
			} else {
				err = code.Encode(cells)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			calls++
		}
		if used := seconds(w, begin) - start; used >= length {
			return float64(calls * w.k * w.cell), used
		}
	}
}

func main() {
	var last work
	var each []*stripes
	var code reedsolomon.Encoder
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var operation string
		var w work
		var ms int
		_, err := fmt.Sscan(lines.Text(), &operation, &w.k, &w.m, &w.cell, &w.memory, &w.threads, &ms)
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		w.decode = operation == "decode"
		if w != last {
			each = nil
			runtime.GC()
			for i := 0; i < w.threads; i++ {
				each = append(each, newStripes(w))
			}
			// Each thread has a stripe of its own, so the library starts none.
			code, err = reedsolomon.New(w.k, w.m, reedsolomon.WithMaxGoroutines(1))
			if err != nil {
				fmt.Println("error", err)
				continue
			}
			last = w
		}
		var all sync.WaitGroup
		rates := make([]float64, w.threads)
		for i := range each {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				bytes, used := each[i].turn(code, float64(ms)/1e3)
				rates[i] = bytes / used / 1e9
			}(i)
		}
		all.Wait()
		sum := 0.0
		for _, rate := range rates {
			sum += rate
		}
		fmt.Printf("%.3f\n", sum)
	}
}
