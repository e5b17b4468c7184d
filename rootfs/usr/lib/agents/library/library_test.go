package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// deadline is how long anything may take on a loaded machine. Nothing waits this long unless it is broken.
const deadline = time.Minute

var roomy = Limits{Documents: 100, Attempts: 3, Lease: time.Hour}

func open(t *testing.T, folder string, limits Limits) *Library {
	t.Helper()
	library, err := OpenLibrary(folder, limits)
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func add(t *testing.T, library *Library, text string) Document {
	t.Helper()
	document, _, err := library.Add("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func take(t *testing.T, library *Library, worker string) *Work {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	work, err := library.Lease(ctx, worker)
	if err != nil || work == nil {
		t.Fatalf("no work: %v", err)
	}
	return work
}

func nothingToDo(t *testing.T, library *Library, worker string) {
	t.Helper()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if work, err := library.Lease(over, worker); work != nil || err != nil {
		t.Fatalf("got %v, %v", work, err)
	}
}

func TestDocumentsGoOutInOrderAndAreFinishedOnce(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	first, second := add(t, library, "one"), add(t, library, "two")
	one, two := take(t, library, "a"), take(t, library, "b")
	if one.ID != first.ID || one.Text != "one" || two.ID != second.ID || one.Attempt != 1 {
		t.Fatalf("got %+v, %+v", one, two)
	}
	if err := library.Finish(one.ID, one.Lease, Summary{Summary: []string{"done"}}); err != nil {
		t.Fatal(err)
	}
	if err := library.Finish(one.ID, one.Lease, Summary{}); !errors.Is(err, ErrStale) {
		t.Errorf("the second result of one lease: got %v", err)
	}
	state, summary, err := library.Summary(context.Background(), first.ID)
	if state != Done || err != nil || summary.Summary[0] != "done" || summary.Worker != "a" {
		t.Errorf("got %v, %+v, %v", state, summary, err)
	}
}

func TestATextSentTwiceIsOneDocument(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	first := add(t, library, "same")
	second, isNew, err := library.Add("other name", "same")
	if isNew || err != nil || second.ID != first.ID || len(library.List()) != 1 {
		t.Errorf("got %+v, %v, %v", second, isNew, err)
	}
}

func TestAWorkerThatComesBackHasLostWhatItHad(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	add(t, library, "text")
	add(t, library, "later")
	before := take(t, library, "worker")
	after := take(t, library, "worker")
	if after.ID != before.ID || after.Attempt != 2 || after.Lease == before.Lease {
		t.Fatalf("got %+v after %+v", after, before)
	}
	for name, err := range map[string]error{
		"result": library.Finish(before.ID, before.Lease, Summary{}),
		"renew":  library.Renew(before.ID, before.Lease),
		"return": library.GiveBack(before.ID, before.Lease, "late"),
	} {
		if !errors.Is(err, ErrStale) {
			t.Errorf("%s of the earlier life: got %v", name, err)
		}
	}
	if err := library.Finish(after.ID, after.Lease, Summary{}); err != nil {
		t.Error(err)
	}
}

func TestAnExpiredLeaseWakesAnotherWorker(t *testing.T) {
	library := open(t, t.TempDir(), Limits{Documents: 1, Attempts: 3, Lease: 20 * time.Millisecond})
	add(t, library, "text")
	dead := take(t, library, "dead")
	other := take(t, library, "other")
	if other.ID != dead.ID || other.Attempt != 2 {
		t.Fatalf("got %+v", other)
	}
	if err := library.Finish(dead.ID, dead.Lease, Summary{}); !errors.Is(err, ErrStale) {
		t.Errorf("the late result: got %v", err)
	}
}

func TestARenewedLeaseLastsAnew(t *testing.T) {
	limits := Limits{Documents: 1, Attempts: 3, Lease: 2 * time.Second}
	library := open(t, t.TempDir(), limits)
	add(t, library, "text")
	start := time.Now()
	work := take(t, library, "worker")
	renewed := start
	for pause := time.NewTicker(limits.Lease / 4); time.Since(start) < limits.Lease*3/2; <-pause.C {
		err := library.Renew(work.ID, work.Lease)
		if err != nil && time.Since(renewed) >= limits.Lease {
			t.Skip("the machine stood still for a whole lease, which was then rightly over")
		}
		if err != nil {
			t.Fatalf("%v after the last renewal: %v", time.Since(renewed), err)
		}
		renewed = time.Now()
	}
	if err := library.Finish(work.ID, work.Lease, Summary{}); err != nil {
		t.Error(err)
	}
}

func TestADocumentThatKillsEveryWorkerIsSetAside(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	poison, healthy := add(t, library, "poison"), add(t, library, "healthy")
	for attempt := 1; attempt <= roomy.Attempts; attempt++ {
		if work := take(t, library, "worker"); work.ID != poison.ID || work.Attempt != attempt {
			t.Fatalf("attempt %d: got %+v", attempt, work)
		}
	}
	if work := take(t, library, "worker"); work.ID != healthy.ID {
		t.Fatalf("got %+v", work)
	}
	entry, err := library.Get(poison.ID)
	if err != nil || entry.State != Failed || entry.Failure == "" {
		t.Errorf("got %+v, %v", entry, err)
	}
}

func TestADocumentThatWorkersGiveBackIsSetAsideWithTheirReason(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	document := add(t, library, "text")
	for attempt := 1; attempt <= roomy.Attempts; attempt++ {
		work := take(t, library, "worker")
		if err := library.GiveBack(work.ID, work.Lease, "too odd"); err != nil {
			t.Fatal(err)
		}
	}
	nothingToDo(t, library, "worker")
	state, summary, err := library.Summary(context.Background(), document.ID)
	if entry, _ := library.Get(document.ID); state != Failed || summary != nil || err != nil || entry.Failure != "too odd" {
		t.Errorf("got %v, %v, %v, %+v", state, summary, err, entry)
	}
}

func TestALibraryThatReopensHasEverythingAndNoLeases(t *testing.T) {
	folder := t.TempDir()
	library := open(t, folder, roomy)
	done, leased, queued := add(t, library, "done"), add(t, library, "leased"), add(t, library, "queued")
	work := take(t, library, "a")
	if err := library.Finish(work.ID, work.Lease, Summary{Keywords: []string{"k"}}); err != nil {
		t.Fatal(err)
	}
	lost := take(t, library, "b")

	again := open(t, folder, roomy)
	states := map[string]State{}
	for _, entry := range again.List() {
		states[entry.ID] = entry.State
	}
	if states[done.ID] != Done || states[leased.ID] != Queued || states[queued.ID] != Queued || len(states) != 3 {
		t.Errorf("got %v", states)
	}
	if err := again.Finish(lost.ID, lost.Lease, Summary{}); !errors.Is(err, ErrStale) {
		t.Errorf("a result from before: got %v", err)
	}
	if work := take(t, again, "c"); work.ID != leased.ID || work.Attempt != 2 {
		t.Errorf("got %+v", work)
	}
}

func TestInterruptedWritesAreClearedAway(t *testing.T) {
	folder := t.TempDir()
	document := add(t, open(t, folder, roomy), "whole")
	for _, name := range []string{".new-123", "0123456789abcdef.txt", "0123456789abcdef.summary"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "fedcba9876543210.json"), []byte("{ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	library := open(t, folder, roomy)
	if list := library.List(); len(list) != 1 || list[0].ID != document.ID {
		t.Errorf("got %+v", list)
	}
	for name, expected := range map[string]bool{
		".new-123": false, "0123456789abcdef.txt": false, "0123456789abcdef.summary": false,
		document.ID + ".txt": true, "fedcba9876543210.json": true,
	} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != expected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFullLibraryTakesNothingUntilSomethingGoes(t *testing.T) {
	library := open(t, t.TempDir(), Limits{Documents: 1, Attempts: 3, Lease: time.Hour})
	first := add(t, library, "one")
	if _, _, err := library.Add("two", "two"); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := library.Remove(first.ID); err != nil {
		t.Fatal(err)
	}
	add(t, library, "two")
}

func TestARemovedDocumentCannotBeHandedIn(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	add(t, library, "text")
	work := take(t, library, "worker")
	if err := library.Remove(work.ID); err != nil {
		t.Fatal(err)
	}
	if err := library.Finish(work.ID, work.Lease, Summary{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	nothingToDo(t, library, "worker")
}

func TestManyWorkersFinishEachDocumentExactlyOnce(t *testing.T) {
	const documents, workers = 40, 8
	library := open(t, t.TempDir(), roomy)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	finished := make(chan string, documents)
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(name string) {
			defer group.Done()
			for {
				work, err := library.Lease(ctx, name)
				if work == nil || err != nil {
					return
				}
				if err := library.Finish(work.ID, work.Lease, Summary{}); err == nil {
					finished <- work.ID
				}
			}
		}(string(rune('a' + worker)))
	}
	for i := 0; i < documents; i++ {
		add(t, library, string(rune('A'+i)))
	}
	seen := map[string]bool{}
	for len(seen) < documents {
		select {
		case id := <-finished:
			if seen[id] {
				t.Fatalf("%s was finished twice", id)
			}
			seen[id] = true
		case <-ctx.Done():
			t.Fatalf("only %d of %d are finished", len(seen), documents)
		}
	}
	cancel()
	group.Wait()
}

func TestSearchFindsDocumentsThatHaveEveryWordBestFirst(t *testing.T) {
	library := open(t, t.TempDir(), roomy)
	ids := map[string]string{}
	for text, index := range map[string]map[string]float64{
		"cats": {"cats": 2, "summarizer": 1}, "cats and dogs": {"cats": 1, "dogs": 3}, "fish": {"fish": 1},
	} {
		ids[add(t, library, text).ID] = text
		work := take(t, library, "worker")
		if err := library.Finish(work.ID, work.Lease, Summary{Summary: []string{text}, Index: index}); err != nil {
			t.Fatal(err)
		}
	}
	for query, expected := range map[string][]string{
		"cats": {"cats", "cats and dogs"}, "CATS, dogs!": {"cats and dogs"}, "summar": {"cats"},
		"sum": {}, "cats fish": {}, "": {}, "?": {},
	} {
		hits := library.Search(query, 10)
		if len(hits) != len(expected) {
			t.Errorf("%q: got %+v", query, hits)
			continue
		}
		for i, hit := range hits {
			if ids[hit.ID] != expected[i] || hit.Headline != expected[i] {
				t.Errorf("%q: got %+v", query, hits)
			}
		}
	}
	if hits := library.Search("cats", 1); len(hits) != 1 {
		t.Errorf("bounded to one: got %+v", hits)
	}
}
