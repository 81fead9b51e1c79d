-- A ledger of version 8 in SQLite, with made-up numbers, as Python's sqlite3 dumps it (Connection.iterdump). It is
-- the ledger of version 7, as version 8 upgraded it, and holds
--   * the campaign spring of try 1: request 1 accepted (people 0 to 2), 2 unknown (3 and 4), 3 not sent (5 and 6),
--     4 unknown (9), 5 unknown (10), which ann called accepted; all within the contact group marketing, and approved;
--   * of try 2: request 6 accepted, which took 9 over from request 4; a pause that was resumed; an open question about
--     request 2; request 7 claimed (7 and 8), whose process ended without a word;
--   * the campaign notices: request 8, to a group, accepted; and autumn, paused by ann, with no request.
-- Person n has the number 27820000000 + n and the text Hi. Never make it anew: it stands for ledgers on disk.
BEGIN TRANSACTION;
CREATE TABLE sms_approval (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	plan_id VARCHAR(64) NOT NULL, 
	decision VARCHAR(10), 
	decided_by VARCHAR(250), 
	decided_at FLOAT, 
	claimant_id INTEGER, 
	messages BIGINT, 
	cost VARCHAR(40), subset BLOB, 
	PRIMARY KEY (id), 
	FOREIGN KEY(campaign_id) REFERENCES sms_campaign (id), 
	FOREIGN KEY(claimant_id) REFERENCES sms_claimant (id)
);
INSERT INTO "sms_approval" VALUES(1,1,'0123456789ab',NULL,NULL,NULL,1,12,NULL,NULL);
INSERT INTO "sms_approval" VALUES(2,1,'0123456789ab','send','ann',1750000000.0,1,12,'18',NULL);
CREATE TABLE sms_balance (
	id INTEGER NOT NULL, 
	conn_id VARCHAR(250) NOT NULL, 
	observed_at FLOAT NOT NULL, 
	amount VARCHAR(40), 
	PRIMARY KEY (id)
);
INSERT INTO "sms_balance" VALUES(1,'sms_default',1750000055.0,'995.5');
CREATE TABLE sms_balance_reading (
	id INTEGER NOT NULL, 
	account VARCHAR(32) NOT NULL, 
	asked_at FLOAT NOT NULL, 
	read_at FLOAT NOT NULL, 
	amount VARCHAR(40), 
	PRIMARY KEY (id)
);
CREATE TABLE sms_boot_clock (
	boot_id VARCHAR(100) NOT NULL, 
	ahead FLOAT NOT NULL, 
	PRIMARY KEY (boot_id)
);
INSERT INTO "sms_boot_clock" VALUES('00000000-0000-0000-0000-000000000000',1749000000.0);
CREATE TABLE sms_campaign (
	id INTEGER NOT NULL, 
	name VARCHAR(1000) NOT NULL, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "sms_campaign" VALUES(1,'spring',1750000000.0);
INSERT INTO "sms_campaign" VALUES(2,'notices',1750003706.0);
INSERT INTO "sms_campaign" VALUES(3,'autumn',1750003706.0);
CREATE TABLE sms_claimant (
	id INTEGER NOT NULL, 
	dag_id VARCHAR(250) NOT NULL, 
	task_id VARCHAR(250) NOT NULL, 
	run_id VARCHAR(250) NOT NULL, 
	map_index INTEGER NOT NULL, 
	try_number INTEGER NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	started_at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sms_claimant" VALUES(1,'d','t','r',-1,1,'h',1,1750000000.0);
INSERT INTO "sms_claimant" VALUES(2,'d','t','r',-1,2,'h',1,1750003655.0);
INSERT INTO "sms_claimant" VALUES(3,'d','group','r',-1,1,'h',1,1750003706.0);
INSERT INTO "sms_claimant" VALUES(4,'other','t','r',-1,1,'h',1,1750003706.0);
CREATE TABLE sms_contact (
	group_id INTEGER NOT NULL, 
	destination BIGINT NOT NULL, 
	request_id INTEGER NOT NULL, 
	claimed_at FLOAT NOT NULL, 
	before_request_id INTEGER, 
	before_at FLOAT, 
	PRIMARY KEY (group_id, destination)
)
 WITHOUT ROWID

;
INSERT INTO "sms_contact" VALUES(1,27820000000,1,1750000010.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000001,1,1750000010.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000002,1,1750000010.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000003,2,1750000021.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000004,2,1750000021.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000007,7,1750003696.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000008,7,1750003696.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000009,6,1750003665.0,NULL,NULL);
INSERT INTO "sms_contact" VALUES(1,27820000010,5,1750000054.0,NULL,NULL);
CREATE TABLE sms_contact_group (
	id INTEGER NOT NULL, 
	name VARCHAR(1000) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "sms_contact_group" VALUES(1,'marketing');
CREATE TABLE sms_decision (
	id INTEGER NOT NULL, 
	request_id INTEGER NOT NULL, 
	asked_by INTEGER, 
	decision VARCHAR(10), 
	decided_by VARCHAR(250), 
	decided_at FLOAT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(request_id) REFERENCES sms_request (id), 
	FOREIGN KEY(asked_by) REFERENCES sms_claimant (id)
);
INSERT INTO "sms_decision" VALUES(1,5,NULL,'accepted','ann',1750000055.0);
INSERT INTO "sms_decision" VALUES(2,2,2,NULL,NULL,NULL);
CREATE TABLE sms_former_holder (
	campaign_id INTEGER NOT NULL, 
	message_key BLOB NOT NULL, 
	request_id INTEGER NOT NULL, 
	PRIMARY KEY (campaign_id, message_key, request_id)
)
 WITHOUT ROWID

;
INSERT INTO "sms_former_holder" VALUES(1,X'607A853E84F752B73F30373099AB428A',4);
CREATE TABLE sms_ledger_version (
	version INTEGER NOT NULL
);
INSERT INTO "sms_ledger_version" VALUES(8);
CREATE TABLE sms_message (
	campaign_id INTEGER NOT NULL, 
	message_key BLOB NOT NULL, 
	destination BIGINT, 
	request_id INTEGER NOT NULL, 
	taken_from INTEGER, 
	PRIMARY KEY (campaign_id, message_key)
)
 WITHOUT ROWID

;
INSERT INTO "sms_message" VALUES(1,X'1D02BB999CD7A4A16287807C7685EE8D',27820000003,2,NULL);
INSERT INTO "sms_message" VALUES(1,X'607A853E84F752B73F30373099AB428A',27820000009,6,4);
INSERT INTO "sms_message" VALUES(1,X'9120B27C8FC37F8EEB9FBD1DAA0E1DCE',27820000001,1,NULL);
INSERT INTO "sms_message" VALUES(1,X'97EF881F3DAB0046E7F8080D9AB0F61C',27820000002,1,NULL);
INSERT INTO "sms_message" VALUES(1,X'A8551844CD1D9F73F490B226A67DF110',27820000004,2,NULL);
INSERT INTO "sms_message" VALUES(1,X'BF8DC2238B2D7C543417098CD5DD0124',27820000000,1,NULL);
INSERT INTO "sms_message" VALUES(1,X'C9659B450FD8BDA9FDD610D2EA4657A5',27820000007,7,NULL);
INSERT INTO "sms_message" VALUES(1,X'CEB5B6503DAA77406EEA4330A8B4995D',27820000008,7,NULL);
INSERT INTO "sms_message" VALUES(1,X'F04999A3158C75D0F9A198FC24ADCF22',27820000010,5,NULL);
INSERT INTO "sms_message" VALUES(2,X'E69396224EE2D02079D88AFBE166A730',NULL,8,NULL);
CREATE TABLE sms_pause (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	paused_by VARCHAR(250) NOT NULL, 
	paused_at FLOAT NOT NULL, 
	resumed_by VARCHAR(250), 
	resumed_at FLOAT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(campaign_id) REFERENCES sms_campaign (id)
);
INSERT INTO "sms_pause" VALUES(1,1,'ann',1750003676.0,'ben',1750003686.0);
INSERT INTO "sms_pause" VALUES(2,3,'ann',1750003706.0,NULL,NULL);
CREATE TABLE sms_progress (
	claimant_id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	conn_id VARCHAR(250), 
	state VARCHAR(30) NOT NULL, 
	updated_at FLOAT NOT NULL, 
	total BIGINT, 
	done BIGINT, 
	not_sent BIGINT, 
	invalid BIGINT, 
	rate FLOAT, 
	figures TEXT, 
	"plan" TEXT, 
	PRIMARY KEY (claimant_id), 
	FOREIGN KEY(claimant_id) REFERENCES sms_claimant (id), 
	FOREIGN KEY(campaign_id) REFERENCES sms_campaign (id)
);
INSERT INTO "sms_progress" VALUES(1,1,'sms_default','failed',1750000055.0,12,7,5,1,2.5,'{"accepted": 3, "unknown": 4, "not_sent": 5, "requests": 4}','{"id": "0123456789ab", "to_send": 12}');
INSERT INTO "sms_progress" VALUES(2,1,'sms_default','sending',1750003696.0,12,8,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_progress" VALUES(3,2,'sms_default','ended',1750003706.0,1,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_progress" VALUES(4,3,'sms_default','waiting for hours',1750003706.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE sms_request (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	claimant_id INTEGER NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	state VARCHAR(10) NOT NULL, 
	submitted INTEGER NOT NULL, 
	claimed_at FLOAT NOT NULL, 
	deadline FLOAT NOT NULL, 
	finished_at FLOAT, 
	http_status INTEGER, 
	event_id BIGINT, 
	messages INTEGER, 
	parts INTEGER, 
	cost VARCHAR(40), 
	reason TEXT, 
	response TEXT, account VARCHAR(32), planned_parts INTEGER, least_price VARCHAR(40), most_price VARCHAR(40), remaining_balance VARCHAR(40), evidence TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(campaign_id) REFERENCES sms_campaign (id), 
	FOREIGN KEY(claimant_id) REFERENCES sms_claimant (id)
);
INSERT INTO "sms_request" VALUES(1,1,1,'bulk','accepted',3,1750000010.0,1750000070.0,1750000011.0,200,9007199254740994,3,3,'4.5',NULL,'{"Cost": 4.5, "RemainingBalance": 1000, "EventId": 9007199254740994, "Sample": "", "Messages": 3, "Parts": 3, "CostBreakDown": [], "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []}}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(2,1,1,'bulk','unknown',2,1750000021.0,1750000081.0,1750000022.0,NULL,NULL,NULL,NULL,NULL,'the answer was lost',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(3,1,1,'bulk','not_sent',2,1750000032.0,1750000092.0,1750000033.0,NULL,NULL,NULL,NULL,NULL,'connection refused',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(4,1,1,'bulk','unknown',1,1750000043.0,1750000103.0,1750000044.0,NULL,NULL,NULL,NULL,NULL,'the answer was lost',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(5,1,1,'bulk','accepted',1,1750000054.0,1750000114.0,1750000055.0,NULL,NULL,NULL,NULL,NULL,'the answer was lost',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(6,1,2,'bulk','accepted',1,1750003665.0,1750003725.0,1750003666.0,200,9007199254740999,1,1,'1.5',NULL,'{"Cost": 1.5, "RemainingBalance": 1000, "EventId": 9007199254740999, "Sample": "", "Messages": 1, "Parts": 1, "CostBreakDown": [], "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []}}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(7,1,2,'bulk','claimed',2,1750003696.0,1750003756.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sms_request" VALUES(8,2,3,'group','accepted',1,1750003706.0,1750003766.0,1750003706.0,200,9007199254740993,7,7,'10.5',NULL,'{"Cost": 10.5, "RemainingBalance": 1000, "EventId": 9007199254740993, "Sample": "", "Messages": 7, "Parts": 7, "CostBreakDown": [], "ErrorReport": {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": []}}',NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX sms_message_request ON sms_message (request_id);
CREATE INDEX sms_former_holder_request ON sms_former_holder (request_id);
CREATE INDEX sms_contact_request ON sms_contact (request_id);
CREATE INDEX sms_balance_conn ON sms_balance (conn_id, observed_at);
CREATE INDEX sms_request_campaign_event ON sms_request (campaign_id, event_id);
CREATE INDEX sms_request_campaign_state ON sms_request (campaign_id, state);
CREATE INDEX sms_approval_campaign ON sms_approval (campaign_id);
CREATE INDEX sms_pause_campaign ON sms_pause (campaign_id);
CREATE INDEX sms_progress_campaign ON sms_progress (campaign_id, claimant_id);
CREATE INDEX sms_decision_request ON sms_decision (request_id);
CREATE INDEX sms_claimant_run ON sms_claimant (dag_id, run_id);
CREATE INDEX sms_request_campaign_claimant ON sms_request (campaign_id, claimant_id);
CREATE INDEX sms_balance_reading_account ON sms_balance_reading (account, read_at);
CREATE INDEX sms_request_account ON sms_request (account, id);
COMMIT;
