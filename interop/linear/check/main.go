// Says whether a history of calls is linearizable, one directory at a time.
//
//	check HISTORY            what clients have seen could have happened
//	check --spoil HISTORY    each read that is changed into a stale one is found
//
// A directory is a map of names to the ids of their files. A call without an answer may have been carried out at any later
// moment, or never.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A call, as a line of the history has it.
type call struct {
	Client int
	Op     string
	Dir    string
	Name   string
	To     string
	Call   int64
	Return int64
	// done, exists, missing, or unknown
	Answer string
	// Of the file that was made or found.
	Id int64
	// What a listing has.
	Files map[string]int64
}

// A file whose maker got no answer has any id.
const anyId = 0

type files map[string]int64

func same(a, b int64) bool { return a == b || a == anyId || b == anyId }

func with(f files, name string, id int64) files {
	next := maps.Clone(f)
	next[name] = id
	return next
}

func without(f files, name string) files {
	next := maps.Clone(f)
	delete(next, name)
	return next
}

// What a call makes of a directory, and whether it may have been answered like that.
func step(f files, c call) (bool, files) {
	id, found := f[c.Name]
	unknown := c.Answer == "unknown"
	switch c.Op {
	case "create":
		if found {
			return unknown || c.Answer == "exists", f
		}
		return unknown || c.Answer == "done", with(f, c.Name, c.Id)
	case "delete":
		if !found {
			return unknown || c.Answer == "missing", f
		}
		return unknown || c.Answer == "done", without(f, c.Name)
	case "rename":
		_, taken := f[c.To]
		if !found {
			return unknown || c.Answer == "missing", f
		}
		if taken {
			return unknown || c.Answer == "exists", f
		}
		return unknown || c.Answer == "done", with(without(f, c.Name), c.To, id)
	case "look":
		if !found {
			return c.Answer == "missing", f
		}
		return c.Answer == "done" && same(id, c.Id), f
	case "list":
		return maps.EqualFunc(f, c.Files, same), f
	}
	panic("a call of another kind: " + c.Op)
}

var model = porcupine.Model{
	Init:              func() any { return files{} },
	Step:              func(state, input, _ any) (bool, any) { return step(state.(files), input.(call)) },
	Equal:             func(a, b any) bool { return maps.Equal(a.(files), b.(files)) },
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

func holds(history []call) porcupine.CheckResult {
	operations := make([]porcupine.Operation, len(history))
	for i, c := range history {
		operations[i] = porcupine.Operation{ClientId: i, Input: c, Call: c.Call, Return: c.Return}
	}
	return porcupine.CheckOperationsTimeout(model, operations, time.Minute)
}

// Changes reads of a name that was removed for good before they began into reads of the file that was there. Returns how many,
// and how many of them were not found.
func spoil(history []call) (int, int) {
	spoiled, missed := 0, 0
	for i, read := range history {
		if read.Op != "look" || read.Answer != "missing" {
			continue
		}
		var removed *call
		for j, other := range history {
			if other.Op == "delete" && other.Name == read.Name && other.Answer == "done" && other.Return < read.Call &&
				(removed == nil || other.Call > removed.Call) {
				removed = &history[j]
			}
		}
		if removed == nil {
			continue
		}
		makes := func(c call) bool {
			return (c.Op == "create" && c.Name == read.Name || c.Op == "rename" && c.To == read.Name) &&
				c.Call < read.Return && c.Return > removed.Call
		}
		if slices.ContainsFunc(history, makes) {
			continue
		}
		stale := slices.Clone(history)
		stale[i].Answer, stale[i].Id = "done", anyId
		spoiled++
		if holds(stale) != porcupine.Illegal {
			missed++
		}
		if spoiled == 3 {
			break
		}
	}
	return spoiled, missed
}

func main() {
	arguments := os.Args[1:]
	spoils := len(arguments) > 0 && arguments[0] == "--spoil"
	if spoils {
		arguments = arguments[1:]
	}
	if len(arguments) != 1 {
		fmt.Fprintln(os.Stderr, "usage: check [--spoil] HISTORY")
		os.Exit(2)
	}
	file, err := os.Open(arguments[0])
	if err != nil {
		panic(err)
	}
	directories, unknown, total := map[string][]call{}, 0, 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			panic(err)
		}
		total++
		if c.Answer == "unknown" {
			unknown++
			c.Return = 1 << 62
		}
		directories[c.Dir] = append(directories[c.Dir], c)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
	spoiled, missed, wrong, given_up := 0, 0, 0, 0
	for _, dir := range slices.Sorted(maps.Keys(directories)) {
		history := directories[dir]
		if spoils {
			changed, unnoticed := spoil(history)
			spoiled, missed = spoiled+changed, missed+unnoticed
			continue
		}
		switch holds(history) {
		case porcupine.Illegal:
			wrong++
			fmt.Printf("%s: nothing explains what clients have seen\n", dir)
			slices.SortFunc(history, func(a, b call) int { return int(a.Call - b.Call) })
			for _, c := range history {
				fmt.Printf("  %+v\n", c)
			}
		case porcupine.Unknown:
			given_up++
			fmt.Printf("%s: not decided within a minute\n", dir)
		}
	}
	if spoils {
		fmt.Printf("%d stale reads put in, %d not found\n", spoiled, missed)
	} else {
		fmt.Printf("%d calls in %d directories, %d without an answer: %d wrong, %d not decided\n",
			total, len(directories), unknown, wrong, given_up)
	}
	if wrong > 0 || given_up > 0 || missed > 0 || spoils && spoiled == 0 {
		os.Exit(1)
	}
}
