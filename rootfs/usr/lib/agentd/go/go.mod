module agentd/agent

go 1.19
