import { Initial1763640000000 } from "./0001-initial";
import { ConnectionLife1763650000000 } from "./0002-connection-life";
import { SyncSchedule1763660000000 } from "./0003-sync-schedule";
import { UsedConsents1763670000000 } from "./0004-used-consents";
import { Matching1763680000000 } from "./0005-matching";
import { Writes1763690000000 } from "./0006-writes";
import { FieldMappings1763700000000 } from "./0007-field-mappings";
import { Lists1763710000000 } from "./0008-lists";
import { Silence1763720000000 } from "./0009-silence";
import { RowPolicies1763740000000 } from "./0011-row-policies";
import { AuditEvents1763750000000 } from "./0012-audit-events";
import { CrmStop1763770000000 } from "./0014-crm-stop";
import { CopiesOfTenants1763780000000 } from "./0015-copies-of-tenants";
import { UnreadRecords1763790000000 } from "./0016-unread-records";
import { UnchangedConnections1763800000000 } from "./0017-unchanged-connections";
import { ShownNotes1763810000000 } from "./0018-shown-notes";
import { PinnedIdentity1763830000000 } from "./0020-pinned-identity";

/** In the order in which they run. */
export const migrations = [
  Initial1763640000000,
  ConnectionLife1763650000000,
  SyncSchedule1763660000000,
  UsedConsents1763670000000,
  Matching1763680000000,
  Writes1763690000000,
  FieldMappings1763700000000,
  Lists1763710000000,
  Silence1763720000000,
  RowPolicies1763740000000,
  AuditEvents1763750000000,
  CrmStop1763770000000,
  CopiesOfTenants1763780000000,
  UnreadRecords1763790000000,
  UnchangedConnections1763800000000,
  ShownNotes1763810000000,
  PinnedIdentity1763830000000,
];
