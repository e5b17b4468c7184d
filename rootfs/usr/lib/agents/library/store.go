package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentd/agent"
)

// The endings of a document's files. The one with its facts is written last and removed first: it makes a document be.
const (
	factsEnding   = ".json"
	textEnding    = ".txt"
	summaryEnding = ".summary"
	scratchPrefix = ".new-"
)

// Store keeps documents in a folder. Each file is whole or not there, whenever the power goes.
type Store struct{ folder string }

// Kept is a document as it was found in the folder.
type Kept struct {
	Document
	Summary *Summary
}

// OpenStore makes the folder if it is not there, and clears away what an interrupted write has left.
func OpenStore(folder string) (*Store, []Kept, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, err
	}
	store := &Store{folder: folder}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	var kept []Kept
	for _, entry := range entries {
		name := entry.Name()
		if id := strings.TrimSuffix(name, factsEnding); id != name && !strings.HasPrefix(name, scratchPrefix) {
			document, err := store.read(id)
			if err != nil {
				// One broken file is one document less, never a library that does not open.
				agent.Logf(agent.Error, "%s is left out: %v", filepath.Join(folder, name), err)
				continue
			}
			kept = append(kept, document)
		} else if store.isLeftOver(name) {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return nil, nil, err
			}
		}
	}
	return store, kept, nil
}

// isLeftOver tells whether a file belongs to no document: its facts were not written yet, or are removed already.
func (s *Store) isLeftOver(name string) bool {
	if strings.HasPrefix(name, scratchPrefix) {
		return true
	}
	id := strings.TrimSuffix(strings.TrimSuffix(name, textEnding), summaryEnding)
	_, err := os.Stat(s.path(id, factsEnding))
	return id != name && errors.Is(err, fs.ErrNotExist)
}

func (s *Store) read(id string) (Kept, error) {
	var kept Kept
	if err := s.decode(id, factsEnding, &kept.Document); err != nil {
		return kept, err
	}
	if kept.ID != id {
		return kept, fmt.Errorf("it holds the facts of %q", kept.ID)
	}
	if _, err := os.Stat(s.path(id, textEnding)); err != nil {
		return kept, err
	}
	var summary Summary
	switch err := s.decode(id, summaryEnding, &summary); {
	case err == nil:
		kept.Summary = &summary
	case !errors.Is(err, fs.ErrNotExist):
		agent.Logf(agent.Warning, "the summary of %s is made again: %v", id, err)
	}
	return kept, nil
}

// Add writes a new document.
func (s *Store) Add(document Document, text string) error {
	if err := s.write(document.ID, textEnding, []byte(text)); err != nil {
		return err
	}
	return s.SetFacts(document)
}

// SetFacts replaces what is known about a document.
func (s *Store) SetFacts(document Document) error {
	return s.encode(document.ID, factsEnding, document)
}

// SetSummary writes a document's summary.
func (s *Store) SetSummary(id string, summary *Summary) error {
	return s.encode(id, summaryEnding, summary)
}

// Text gives a document's text.
func (s *Store) Text(id string) (string, error) {
	text, err := os.ReadFile(s.path(id, textEnding))
	return string(text), err
}

// Remove forgets a document.
func (s *Store) Remove(id string) error {
	for _, ending := range []string{factsEnding, textEnding, summaryEnding} {
		if err := os.Remove(s.path(id, ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.syncFolder()
}

func (s *Store) path(id, ending string) string { return filepath.Join(s.folder, id+ending) }

func (s *Store) decode(id, ending string, value any) error {
	data, err := os.ReadFile(s.path(id, ending))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

func (s *Store) encode(id, ending string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.write(id, ending, data)
}

// write replaces a file whole: the new bytes are on the disk before they get the name.
func (s *Store) write(id, ending string, data []byte) (err error) {
	file, err := os.CreateTemp(s.folder, scratchPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err = os.Rename(file.Name(), s.path(id, ending)); err != nil {
		return err
	}
	return s.syncFolder()
}

// syncFolder makes names last, fsync(2): syncing a file does not sync the folder that names it.
func (s *Store) syncFolder() error {
	folder, err := os.Open(s.folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
