package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentd/agent"
)

// Bounds of what a request may carry and ask for.
const (
	maxText    = 1 << 20
	maxResult  = 1 << 20
	maxTerms   = 500
	maxUploads = 16 // At once; each holds its text in memory.
	maxName    = 200
	maxHits    = 50
	maxWait    = 30 * time.Second
	envelope   = 64 << 10 // What a multipart form may weigh beside its text.
	anonymous  = "untitled"
	workerName = "worker"
)

const help = `library: send texts, get summaries

  curl --data-binary @FILE 'ADDRESS/documents?name=FILE'   send a text (or: curl -F file=@FILE ADDRESS/documents)
  curl ADDRESS/documents                                   all documents and their states
  curl ADDRESS/documents/ID                                one document
  curl ADDRESS/documents/ID/text                           its text
  curl 'ADDRESS/documents/ID/summary?wait=30s'             its summary, waiting for it
  curl -X DELETE ADDRESS/documents/ID                      forget it
  curl 'ADDRESS/search?q=WORDS'                            summarized documents that have all the words
  curl ADDRESS/healthz                                     how many documents are in each state

Workers: POST /work/lease?worker=NAME&wait=30s, POST /work/ID/renew, POST /work/ID/result
`

// api answers HTTP requests about one library.
type api struct {
	library *Library
	// uploads has a place for each text that is being read.
	uploads chan struct{}
}

func newAPI(library *Library) *api {
	return &api{library: library, uploads: make(chan struct{}, maxUploads)}
}

// problem is an error with the status that tells it.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// ServeHTTP finds the handler, and makes JSON of what it gives. A write that fails means that the client has gone.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" && r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, strings.ReplaceAll(help, "ADDRESS", "http://"+r.Host))
		return
	}
	status, answer, err := a.route(w, r)
	if err != nil {
		status, answer = statusOf(err), map[string]string{"error": err.Error()}
		if status >= http.StatusInternalServerError {
			agent.Logf(agent.Error, "%s %s: %v", r.Method, r.URL.Path, err)
		}
	}
	if text, isText := answer.(string); isText {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if answer != nil {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.Encode(answer)
	}
}

func (a *api) route(w http.ResponseWriter, r *http.Request) (int, any, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	id := ""
	if len(parts) > 1 && parts[1] != "lease" {
		id, parts[1] = parts[1], "ID"
	}
	switch r.Method + " /" + strings.Join(parts, "/") {
	case "GET /healthz":
		return http.StatusOK, a.library.Counts(), nil
	case "GET /search":
		return http.StatusOK, a.library.Search(r.URL.Query().Get("q"), maxHits), nil
	case "GET /documents":
		return http.StatusOK, a.library.List(), nil
	case "POST /documents":
		return a.add(w, r)
	case "GET /documents/ID":
		entry, err := a.library.Get(id)
		return http.StatusOK, entry, err
	case "GET /documents/ID/text":
		text, err := a.library.Text(id)
		return http.StatusOK, text, err
	case "GET /documents/ID/summary":
		return a.summary(r, id)
	case "DELETE /documents/ID":
		return http.StatusNoContent, nil, a.library.Remove(id)
	case "POST /work/lease":
		return a.lease(r)
	case "POST /work/ID/renew":
		return a.renew(w, r, id)
	case "POST /work/ID/result":
		return a.result(w, r, id)
	}
	return 0, nil, &problem{http.StatusNotFound, fmt.Sprintf("no %s %s here; see GET /", r.Method, r.URL.Path)}
}

func statusOf(err error) int {
	var known *problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known.status
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, ErrStale):
		return http.StatusConflict
	case errors.Is(err, ErrFull):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

func (a *api) add(w http.ResponseWriter, r *http.Request) (int, any, error) {
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	case <-r.Context().Done():
		return 0, nil, &problem{http.StatusServiceUnavailable, "too many texts at once; try again"}
	}
	name, text, err := readDocument(w, r)
	if err != nil {
		return 0, nil, err
	}
	document, isNew, err := a.library.Add(name, text)
	if err != nil {
		return 0, nil, err
	}
	if !isNew {
		return http.StatusOK, document, nil
	}
	agent.Logf(agent.Info, "%s (%s, %d bytes) came in", document.ID, document.Name, document.Size)
	w.Header().Set("Location", "/documents/"+document.ID)
	return http.StatusCreated, document, nil
}

// readDocument takes the text from the body, or from the first file of a form.
func readDocument(w http.ResponseWriter, r *http.Request) (name, text string, err error) {
	name = r.URL.Query().Get("name")
	body := io.Reader(http.MaxBytesReader(w, r.Body, maxText))
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		r.Body = http.MaxBytesReader(w, r.Body, maxText+envelope)
		form, err := r.MultipartReader()
		if err != nil {
			return "", "", &problem{http.StatusBadRequest, err.Error()}
		}
		part, err := form.NextPart()
		if err != nil {
			return "", "", &problem{http.StatusBadRequest, "the form has no file: " + err.Error()}
		}
		body = part
		if name == "" {
			name = part.FileName()
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", "", err
	}
	switch {
	case len(data) > maxText:
		return "", "", &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("a text has at most %d bytes", maxText)}
	case !utf8.Valid(data):
		return "", "", &problem{http.StatusUnsupportedMediaType, "the text is not UTF-8"}
	case strings.TrimSpace(string(data)) == "":
		return "", "", &problem{http.StatusBadRequest, "the text is empty"}
	}
	return tidyName(name), string(data), nil
}

// tidyName makes a name fit for a line of a log.
func tidyName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, path.Base(name))
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" || name == "." || name == "/" {
		return anonymous
	}
	return name
}

func (a *api) summary(r *http.Request, id string) (int, any, error) {
	wait, err := waitOf(r)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	state, summary, err := a.library.Summary(ctx, id)
	switch {
	case err != nil:
		return 0, nil, err
	case summary != nil:
		return http.StatusOK, summary, nil
	case state == Failed:
		entry, err := a.library.Get(id)
		if err != nil {
			return 0, nil, err
		}
		return 0, nil, &problem{http.StatusUnprocessableEntity, "no summary: " + entry.Failure}
	}
	return http.StatusAccepted, map[string]State{"state": state}, nil
}

func (a *api) lease(r *http.Request) (int, any, error) {
	worker := tidyName(r.URL.Query().Get(workerName))
	wait, err := waitOf(r)
	if err != nil {
		return 0, nil, err
	}
	if worker == anonymous {
		return 0, nil, &problem{http.StatusBadRequest, "say who works: ?worker=NAME"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	work, err := a.library.Lease(ctx, worker)
	if work == nil && err == nil {
		return http.StatusNoContent, nil, nil
	}
	return http.StatusOK, work, err
}

func (a *api) renew(w http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	var request struct {
		Lease string `json:"lease"`
	}
	if err := decode(w, r, &request); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, a.library.Renew(id, request.Lease)
}

func (a *api) result(w http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	var request struct {
		Lease string `json:"lease"`
		Error string `json:"error"`
		Summary
	}
	if err := decode(w, r, &request); err != nil {
		return 0, nil, err
	}
	if len(request.Index) > maxTerms || len(request.Keywords) > maxTerms {
		return 0, nil, &problem{http.StatusBadRequest, fmt.Sprintf("an index has at most %d words", maxTerms)}
	}
	if request.Error != "" {
		return http.StatusNoContent, nil, a.library.GiveBack(id, request.Lease, request.Error)
	}
	if err := a.library.Finish(id, request.Lease, request.Summary); err != nil {
		return 0, nil, err
	}
	agent.Logf(agent.Info, "%s is summarized", id)
	return http.StatusNoContent, nil, nil
}

func decode(w http.ResponseWriter, r *http.Request, value any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResult))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return &problem{http.StatusBadRequest, "the body is not what is expected: " + err.Error()}
	}
	return nil
}

// waitOf reads ?wait=: Go's spans ("10s") or whole seconds, at most maxWait.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if seconds, whole := strconv.ParseUint(text, 10, 31); whole == nil {
		wait, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || wait < 0 {
		return 0, &problem{http.StatusBadRequest, fmt.Sprintf("wait=%q is no span of time; say 10s", text)}
	}
	if wait > maxWait {
		wait = maxWait
	}
	return wait, nil
}
